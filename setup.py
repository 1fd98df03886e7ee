"""The packages of the wheel, found rather than listed; everything else about it is in setup.cfg."""

from setuptools import find_namespace_packages, find_packages, setup

PROPERTIES = "recbole_leaprec.properties"  # beside the package in a checkout, inside it in a wheel

setup(
    packages=[
        *find_packages(include=["recbole_leaprec", "recbole_leaprec.*"]),
        PROPERTIES,
        *(f"{PROPERTIES}.{folder}" for folder in find_namespace_packages("properties")),
    ],
    package_dir={PROPERTIES: "properties"},
)
