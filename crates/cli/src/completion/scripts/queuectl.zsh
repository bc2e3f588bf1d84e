#compdef queuectl
# Completion of queuectl for zsh: the program itself says what can follow.
_queuectl() {
    local -a reply
    local first
    reply=("${(@f)$(command queuectl __complete zsh -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    [[ $PREFIX == --*=* ]] && compset -P '*='
    case $reply[1] in
    files) _files ;;
    folders) _files -/ ;;
    command*)
        first=$(( ${reply[1]#* } + 1 ))
        words=("${(@)words[first,-1]}")
        (( CURRENT -= first - 1 ))
        _normal
        ;;
    values)
        shift reply
        (( $#reply )) && _describe -V -t values value reply
        ;;
    esac
}
# Both ways to load this file work: from a folder of $fpath, and with `source`.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _queuectl "$@"
else
    compdef _queuectl queuectl
fi
