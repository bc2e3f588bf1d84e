# Closes the inherited lock of the slot record and executes the given command.
exec 60>&-
exec "$@"
