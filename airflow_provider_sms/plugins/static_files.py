"""Styles, scripts and pictures, all of them from this package."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, HTTPException, status
from fastapi.responses import FileResponse

router = APIRouter()

FOLDER = Path(__file__).parent / "static"
_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}
_NAMES = frozenset(path.name for path in FOLDER.iterdir() if path.suffix in _KINDS)


@router.get("/static/{name}")
def static_file(name: str) -> FileResponse:
    """Give a file of the package by its name."""
    if name not in _NAMES:
        raise HTTPException(status.HTTP_404_NOT_FOUND, "There is no such file")
    path = FOLDER / name
    return FileResponse(path, media_type=_KINDS[path.suffix], headers={"Cache-Control": "private, max-age=3600"})
