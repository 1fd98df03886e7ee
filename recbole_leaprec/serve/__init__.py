"""Calibrated lists over HTTP: `leaprec serve` on one machine, `serve run recbole_leaprec.serve:deployment` on a Ray cluster.

settings, bodies     the settings of a service, and the bodies of requests and answers
batching             answers requests together that come together
service              makes answers from wishes, without HTTP
app                  the FastAPI application
server, ray_serve    uvicorn, and Ray Serve
"""

from typing import TYPE_CHECKING

from recbole_leaprec.common.lazy import lazy_names

if TYPE_CHECKING:
    from recbole_leaprec.serve.app import make_app
    from recbole_leaprec.serve.ray_serve import deployment
    from recbole_leaprec.serve.service import Service

__all__ = ["Service", "deployment", "make_app"]

__getattr__ = lazy_names(__name__, {"Service": "service", "deployment": "ray_serve", "make_app": "app"})
