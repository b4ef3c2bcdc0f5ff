# What a command of the shell needs, as far as its text tells. The text is not the
# boundary. A command that hides what it needs runs in the sandbox, which does not
# have it. Outside the sandbox, a command asks unless all of its text has a known form.
package remit.coding_agent

command := input.call.args.command

# The programs of the command, also behind a program that starts another one.
programs contains name if {
	some one in input.call.script.commands
	is_string(one.program)
	name := regex.replace(one.program, `^.*/`, "")
}

programs contains name if {
	some one in input.call.script.commands
	is_string(one.program)
	regex.match(`^(.*/)?(env|command|time|timeout|nice|nohup|setsid|exec|xargs|builtin)$`, one.program)
	some word in one.args
	is_string(word)
	name := regex.replace(word, `^.*/`, "")
}

# Lines of the programs and their arguments, without what is known only at run time.
lines contains line if {
	some one in input.call.script.commands
	line := concat(" ", [word | some word in array.concat([one.program], one.args); is_string(word)])
}

# Programs that act as another user. The person runs them.
rises if {
	some name in programs
	name in {"sudo", "su", "doas", "pkexec", "nsenter", "chroot", "mount", "umount", "setcap", "visudo", "useradd", "usermod", "passwd"}
}

# Commands of remit that change what it decides, records or guards.
guards if {
	some line in lines
	regex.match(`^(\S*/)?remit( |$)`, line)
	not regex.match(`^(\S*/)?remit (log|show|diff|doctor|help|version|policy|--help|--version)( |$)`, line)
}

guards if {
	some name in programs
	name in {"kill", "pkill", "killall", "systemctl"}
	regex.match(`\bremit\b`, command)
}

guards if {
	some name in programs
	name in {"claude", "codex", "gemini", "opencode", "cursor-agent"}
}

# The sandbox has no server of this machine, no credentials, and no process that
# outlives the command.
leaves if input.call.args.background

leaves if {
	some name in programs
	name in outside_programs
}

leaves if {
	some line in lines
	regex.match(outside_line, line)
	not regex.match(` --dry-run( |$)`, line)
}

leaves if {
	regex.match(`(^|[;&|(]\s*)kill\s`, command)
	not contains(command, "$!")
	not regex.match(`kill( -\w+)? %`, command)
}

leaves if rises

outside_programs := {
	"docker", "docker-compose", "podman", "nerdctl", "kubectl", "helm", "minikube", "kind", "terraform", "tofu", "pulumi", "ansible-playbook",
	"aws", "gcloud", "gsutil", "az", "doctl", "flyctl", "heroku", "vercel", "netlify", "wrangler", "rclone", "gh", "glab", "hub",
	"ssh", "scp", "sftp", "ssh-add", "mosh", "psql", "pg_isready", "pg_dump", "pg_restore", "createdb", "dropdb", "createuser", "mysql", "mysqladmin",
	"mysqldump", "mariadb", "redis-cli", "mongo", "mongosh", "mongodump", "pkill", "killall", "fuser", "lsof", "ss", "netstat",
	"systemctl", "service", "journalctl", "crontab", "at", "batch", "launchctl", "security", "secret-tool", "gpg", "op", "pass",
	"apt", "apt-get", "dnf", "yum", "brew", "pacman", "snap", "adb", "open", "xdg-open", "mail", "sendmail", "osascript",
}

outside_line := concat("|", [
	`^(\S*/)?git (-[cC] \S+ |--\S+ )*(push|fetch|pull|ls-remote|send-email)( |$)`, `^(\S*/)?git (-[cC] \S+ |--\S+ )*remote (show|update|prune)( |$)`,
	`^(\S*/)?git (-[cC] \S+ |--\S+ )*worktree (add|remove|move)( |$)`,
	`^(\S*/)?(curl|wget|http|xh|nc|ncat|telnet|ab|wrk|hey)( .*)?[ /@=](localhost|127\.[0-9.]+|0\.0\.0\.0|\[::1\])([:/ ]|$)`,
	`^(npm|pnpm|yarn) (npm )?(publish|unpublish|deprecate|login|adduser|token|owner|access|dist-tag)( |$)`, `^cargo (publish|login|yank|owner)( |$)`,
	`^(twine upload|gem push|poetry publish|uv publish|flit publish|mvn .*deploy|npm config set .*(--location|--global|-g)|git config .*--(global|system))( |$)`,
	`^python3? -m twine`, `^pip3? config set`, `^rsync( .*)? \S*[a-z0-9]:`,
])

# The hosts that a command names to use them. Approval of the command covers them.
named_hosts contains host if {
	regex.match(network, command)
	some one in input.call.urls
	host := url_host(one.url)
	not host in source_hosts
	not own_address(host)
	not host in page_hosts
}

url_host(url) := lower(regex.replace(url, `^https?://([^/?#@]*@)?([^/:?#]+).*$`, "$2")) if regex.match(`^https?://([^/?#@]*@)?[^/:?#\[]+`, url)

# What starts the use of a network, in a text.
network := concat("", [
	`\b(curl|wget|aria2c|xh|deno|fetch|urlopen|urllib|requests|axios|httpx|Net::HTTP|git clone|git submodule|git remote (add|set-url)`,
	`|pip3? install|pipx|uv (add|pip)|npx|(npm|pnpm|yarn|bun|gem|bundle|cargo|go) (i|install|add|get|run|source)|https?'\))`,
])

# A command whose whole text is a list of these forms changes nothing, or fetches
# into a repository whose configuration asks before it changes.
harmless if {
	is_string(command)
	regex.match(`^[\w ./:=,@%+"'{}\\;&|>$?-]+$`, command)
	steps := regex.split(`\|\||&&|[;|]`, regex.replace(command, `( [12]?>\s?/dev/null| 2>&1)( |$)`, " "))
	every step in steps {
		regex.match(harmless_step, regex.replace(trim_space(step), `^(do )+`, ""))
	}
	not to_control_port
}

to_control_port if {
	some port in control_ports
	contains(command, concat("", [":", port]))
}

harmless_step := concat("", [`^(`, concat("|", [
	`sleep \d{1,2}(\.\d+)?`, `true`, `for [a-z] in( \w+)+`, `done`, `echo( ([\w./:=,-]+|"[\w ./:=,-]*(\$\?)?"|'[\w ./:=,-]*'|\$\?))*`,
	`(head|tail)( -n? ?\d+| -c ?\d+)?`, `wc( -[lcw])?`, `cat`, `sort( -[nru]+)?`, `uniq( -c)?`, `jq( -[rcS]+)?( \.[\w.]*| length| keys)?`,
	`grep( -[ciEFnovwx]+)* ([\w.][\w.:-]*|'[\w.][\w .:-]*'|"[\w.][\w .:-]*")`,
	concat("", [
		`curl( -[sSfiIvg]+| --silent| --fail| --head| --include| --show-error| -o /dev/null| -m \d+| --max-time \d+| --retry \d+| -X (GET|HEAD)`,
		`| -w ('(%\{[a-z_]+\}|\\n| )+'|"(%\{[a-z_]+\}|\\n| )+")| -H ('[A-Za-z-]+: [\w ./=,+-]+'|"[A-Za-z-]+: [\w ./=,+-]+"))* (`,
		local_url, `|'`, local_url, `'|"`, local_url, `")`,
	]),
	`lsof( -[nPti]+)*( (tcp|TCP)?:\d+)?`, `ss -[tlnpu]+`, `pg_isready( -h (localhost|127\.0\.0\.1)| -p \d+| -q)*`,
	`docker (ps|images|version)( -[aq]+)*( --format ('[\w .{}\\:,-]+'|"[\w .{}\\:,-]+"))?`, `docker compose version`, `docker logs( --tail[= ]\d+)? \w[\w-]*`,
	`gh (pr|issue|run|release) (list|status|view|checks|diff)( \d+| --(watch|comments|required))*`,
	`git fetch( -[qpv]+| --(all|prune|tags|quiet))*( (origin|upstream)( [A-Za-z][\w/-]*)?)?`,
	`git pull( -q| --(ff-only|rebase|quiet))*( (origin|upstream)( [A-Za-z][\w/-]*)?)?`,
	`git diff --(stat|shortstat|name-only|name-status) (origin|upstream)/[\w/-]+(\.\.\.?(HEAD|(origin|upstream)/[\w/-]+))?`,
	`git (rebase|merge --ff-only) (origin|upstream)/[\w/-]+`, `git ls-remote( --(heads|tags))* (origin|upstream)`,
	`git remote( -v| show (origin|upstream))`, `git (status|log|branch|stash list)( -(s|sb|b|v|vv|a|r|\d+)| --(oneline|short|stat|graph|all|decorate|porcelain))*`,
]), `)$`])

# A server of this machine at a port that own servers have.
local_url := `(https?://)?(localhost|127\.0\.0\.1):([3458]\d{3})(/[\w./=%-]*)?`
