// Browsers start no workers for pages that were opened from disk. There the search, which is one,
// runs in a hidden frame instead. Pages from a server keep their workers.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = frame.contentWindow;
      // What the worker says goes to whoever made it; what it is told arrives in its window.
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.waiting = [];
      this.tell = (data) => this.waiting.push(data);
      const script = frame.contentDocument.createElement("script");
      script.src = url;
      script.onload = () => {
        this.tell = (data) => inside.dispatchEvent(new MessageEvent("message", { data }));
        this.waiting.splice(0).forEach(this.tell);
      };
      script.onerror = () => this.dispatchEvent(new ErrorEvent("error", { message: `no ${url}` }));
      frame.contentDocument.body.appendChild(script);
      this.addEventListener("message", (event) => this.onmessage && this.onmessage(event));
    }
    postMessage(data) {
      this.tell(data);
    }
    terminate() {
      this.tell = () => {};
    }
  };
}
