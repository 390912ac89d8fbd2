"""What ``softclt`` says when it is called alone: by problem, the command to begin with."""

# Problem -> what the command does about it, and a line to begin with.
DOORS = {
    "Find similar series": (
        "an index of all series, to be asked for those that are most like a new one",
        "softclt index machines.csv --id machine --time time --out index/",
    ),
    "Label with few examples": (
        "labels for all series from labels of some, and how sure they are",
        "softclt classify series.csv --labels few.csv --out labels.csv --report report.html",
    ),
    "Get alarms": (
        "learns what is normal, and writes when something is not",
        "softclt detect load.csv --out alarms.csv --plot alarms.png",
    ),
    "Forecast": (
        "what comes next, with intervals",
        "softclt forecast load.csv --horizon 24 --out forecast.csv --plot forecast.png",
    ),
    "Reproduce the paper": (
        "soft against hard on data sets with labels, then tables of the results",
        "softclt bench quick --out results/",
    ),
}


def doors() -> str:
    """The text: a problem and a command each, then where to read on."""
    lines = ["softclt learns from time series, with labels or without. What is your problem?", ""]
    for problem, (about, command) in DOORS.items():
        lines += [f"{problem}: {about}", f"  {command}", ""]
    lines += [
        "See it work on real data:  softclt demo",
        "Look into your file first: softclt check FILE",
        "All commands and options:  softclt --help",
    ]
    return "\n".join(lines)
