# Completion of queuectl for bash: the program itself says what can follow.
_queuectl() {
    local rest=${COMP_LINE:0:COMP_POINT} word i value about
    local -a words=() places=() reply=()
    # bash also splits words at = and :, so parts that touch are joined again.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        ((i < COMP_CWORD)) || word=${rest#"${rest%%[![:space:]]*}"}
        if ((i == 0)) || [[ $rest == [[:space:]]* ]]; then
            words+=("$word") places+=("$i")
        else
            words[-1]+=$word
        fi
        rest=${rest#*"$word"}
    done
    mapfile -t reply < <(command queuectl __complete bash -- "${words[@]}" 2>/dev/null)
    COMPREPLY=()
    case ${reply[0]} in
    files) compopt -o default ;;
    folders) compopt -o dirnames ;;
    command*)
        i=${places[${reply[0]#* }]}
        if declare -F _comp_command_offset >/dev/null; then _comp_command_offset "$i"
        elif declare -F _command_offset >/dev/null; then _command_offset "$i"
        elif ((i == COMP_CWORD)); then mapfile -t COMPREPLY < <(compgen -c -- "${words[-1]}")
        else compopt -o default; fi
        ;;
    values)
        for word in "${reply[@]:1}"; do
            IFS=$'\t' read -r value about <<<"$word"
            # Descriptions are for lists only: bash would insert that of a single candidate.
            [[ -n $about && ${#reply[@]} -gt 2 && $COMP_TYPE =~ ^(63|33)$ ]] && value+="  ($about)"
            COMPREPLY+=("${value:0:${COLUMNS:-80}-2}")
        done
        ;;
    esac
}
complete -o nosort -F _queuectl queuectl
