# Runs until it is killed, and writes TICK lines. Arguments: JOB ATTEMPT NAME; it needs no environment.
while :; do
    echo "TICK $1 $2 $3" >> ledger
    sleep 0.05
done
