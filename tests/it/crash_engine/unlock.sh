# Closes the inherited lock of the slot and becomes the given command.
exec 60>&-
exec "$@"
