"""The two client classes, each in a module that programs import separately, so only one is loaded."""
