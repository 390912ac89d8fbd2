"""Models behind HTTP: embeddings, classes, alarms and hits for whoever can send a request.

FastAPI and uvicorn are imported by `app` and `running` alone; all else works without them.
"""
