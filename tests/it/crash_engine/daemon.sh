# Lives until it is killed, and shows that it lives, with nothing but its arguments: JOB ATTEMPT NAME.
while :; do
    echo "TICK $1 $2 $3" >> ledger
    sleep 0.05
done
