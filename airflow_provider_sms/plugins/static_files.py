"""Styles, scripts and pictures, all of them from this package."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, HTTPException, status
from fastapi.responses import FileResponse

router = APIRouter()

FOLDER = Path(__file__).parent / "static"
_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}


@router.get("/static/{name}")
def static_file(name: str) -> FileResponse:
    """Give a file of the package by its name."""
    path = FOLDER / name
    if path.parent != FOLDER or path.suffix not in _KINDS or not path.is_file():
        raise HTTPException(status.HTTP_404_NOT_FOUND, "There is no such file")
    return FileResponse(path, media_type=_KINDS[path.suffix], headers={"Cache-Control": "private, max-age=3600"})
