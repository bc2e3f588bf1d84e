# Completion of queuectl for fish: the program itself says what can follow.
function __queuectl_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l reply (command queuectl __complete fish -- $words "$typed" 2>/dev/null)
    set -l flag (string match -r -- '^--[^=]*=' "$typed")
    set -l value (string replace -r -- '^--[^=]*=' '' "$typed")
    switch "$reply[1]"
        case files
            printf "$flag%s\n" (__fish_complete_path "$value")
        case folders
            printf "$flag%s\n" (__fish_complete_directories "$value" '')
        case 'command *'
            set -l first (math (string replace 'command ' '' $reply[1]) + 1)
            set -a words ''
            set -l before (string escape -- $words[$first..-2])
            complete -C (string join ' ' -- $before "$typed")
        case values
            string join \n -- $reply[2..]
    end
end
complete -c queuectl -f -k -a '(__queuectl_complete)'
