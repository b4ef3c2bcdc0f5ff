package remit_coding_agent_test

import data.remit
import data.remit.coding_agent

doc(tool, access) := {
	"purpose": "run",
	"tool": {"name": tool, "confinement": "trusted", "coverage": "declared"},
	"call": {"args": {}, "effect_class": "reversible", "urls": []},
	"access": access,
}

file(action, root, path) := {"action": action, "resource": {"kind": "file", "root": root, "path": path, "name": regex.replace(path, ".*/", ""), "segments": split(path, "/")}}

self(tool) := {"action": "call", "resource": {"kind": "tool", "name": tool}}

bash := {"action": "execute", "resource": {"kind": "exec", "program": "bash"}}

web(scheme, host, port) := {"action": "connect", "resource": {"kind": scheme, "host": host, "port": port}}

with_args(request, args) := object.union(request, {"call": {"args": args}})

# A command of the given lines, as the hooks tell its text and its parts.
shell(tool, text, lines) := object.union(doc(tool, bash), {"call": {
	"args": {"command": text},
	"script": {"commands": [{"program": words[0], "args": array.slice(words, 1, count(words))} | some line in lines; words := split(line, " ")]},
	"urls": [{"url": url} | some url in regex.find_n(`https?://[^ ']+`, text, -1)],
}})

sandbox(text) := shell("client_shell", text, [text])

observe(text) := shell("client_shell_observed", text, [text])

runs(request) if {
	count(remit.allow) > 0 with input as request
	count(remit.ask) == 0 with input as request
	count(remit.deny) == 0 with input as request
}

asks(request) if {
	count(remit.ask) > 0 with input as request
	count(remit.deny) == 0 with input as request
}

refused(request) if count(remit.deny) > 0 with input as request

# No rule allows it.
nothing(request) if {
	count(remit.allow) == 0 with input as request
	count(remit.ask) == 0 with input as request
}

test_reads if {
	runs(doc("client_read", file("read", "workspace", "src/a.go")))
	runs(doc("client_search", self("client_search")))
	runs(doc("client_inner", self("client_inner")))
	every path in ["usr/include/stdio.h", "home/u/go/pkg/mod/a/b.go", "home/u/.cargo/registry/x.rs", "opt/sdk/a.h", "etc/os-release"] {
		runs(doc("client_read", file("read", "outside", path)))
	}
	every path in ["home/u/src/other/a.go", "home/u", "home/u/usr/notes", "tmp/usr/x", "etc/passwd"] {
		asks(doc("client_read", file("read", "outside", path)))
	}
	refused(doc("client_read", file("read", "workspace", ".env")))
	every path in [
		"home/u/.ssh/id_rsa", "proc/1/environ", "proc/self/root/home/u/a", "etc/shadow", "home/u/.bash_history", "home/u/.config/gh/hosts.yml",
		"home/u/.mozilla/firefox/p/key4.db", "home/u/.config/google-chrome/Default/Cookies", "home/u/.claude/.credentials.json", "home/u/.m2/settings.xml",
		"home/u/.local/state/remit/journal.db",
	] {
		refused(doc("client_read", file("read", "outside", path)))
	}
	remit.hint["work without this file, or ask the person for what is needed from it"] with input as doc("client_read", file("read", "workspace", ".env"))
}

test_changes if {
	runs(doc("client_write", file("write", "workspace", "src/a.go")))
	runs(doc("client_edit", file("write", "workspace", "a.txt")))
	refused(doc("client_write", file("write", "workspace", ".git/config")))
	refused(doc("client_edit", file("write", "workspace", "id_rsa")))
	asks(doc("client_write", file("write", "workspace", ".mcp.json")))
	remit.ask["a client of agents starts what this file says, outside every sandbox"] with input as doc("client_write", file("write", "workspace", ".mcp.json"))
	every path in [
		".claude/settings.local.json", ".claude/hooks/a.sh", ".codex/hooks.json", ".cursor/hooks.json", ".opencode/plugins/remit.ts", "opencode.json",
		".vscode/tasks.json", ".husky/pre-commit", ".gitmodules", ".pre-commit-config.yaml",
	] {
		asks(doc("client_write", file("write", "workspace", path)))
		asks(doc("client_shell", file("write", "workspace", path)))
	}
	runs(doc("client_write", file("write", "workspace", ".vscode/extensions.json")))
}

test_pipelines_and_packages if {
	flow := doc("client_edit", file("write", "workspace", ".github/workflows/ci.yml"))
	runs(with_args(flow, {"old": "- 22", "new": "- 23"}))
	asks(with_args(flow, {"new": "run: echo ${{ toJSON(secrets) }}"}))
	asks(with_args(flow, {"patch": "+on: pull_request_target"}))
	manifest := doc("client_edit", file("write", "workspace", "package.json"))
	runs(with_args(manifest, {"new": `"test": "mocha"`}))
	asks(with_args(manifest, {"new": `"preinstall": "sh x"`}))
	runs(with_args(doc("client_edit", file("write", "workspace", "README.md")), {"new": "secrets postinstall"}))
}

test_outside if {
	asks(doc("client_outside", file("write", "outside", "home/u/src/other/main.go")))
	every path in [
		"etc/passwd", "home/u/.bashrc", "home/u/.profile", "home/u/.gitconfig", "home/u/.ssh/authorized_keys", "home/u/.claude/settings.json",
		"home/u/.config/autostart/x.desktop", "home/u/.config/systemd/user/u.service", "home/u/.config/remit/coding-agent.rego",
		"home/u/.local/bin/sudo", "proc/self/root/home/u/.bashrc", "home/u/src/other/.git/hooks/x", "var/spool/cron/u",
	] {
		refused(doc("client_outside", file("write", "outside", path)))
	}
	scratch := doc("client_outside", file("write", "outside", "tmp/bench.py"))
	remit.deny == {"commands in the sandbox do not see the files of /tmp"} with input as scratch
	remit.hint["put scratch files into a folder of the workspace, and remove them when you are done"] with input as scratch
}

test_sandbox if {
	every text in ["make test", "git status", "git stash push -m x", "git worktree list", "cargo publish --dry-run", "rm -rf build", "npm install"] {
		runs(sandbox(text))
	}
	runs(object.union(sandbox("x"), {"call": {"script": {"commands": [{"program": null, "args": [null]}, {"program": "env", "args": [null, "ls"]}]}}}))
	runs(shell("client_shell", "server & kill $!", ["server", "kill"]))
	runs(shell("client_shell", "server & kill %1", ["server", "kill %1"]))
	runs(doc("client_shell", file("write", "workspace", "out/a.o")))
	asks(doc("client_shell", object.union(file("write", "workspace", ".git/hooks/x"), {"git": {"kind": "hook"}})))
	asks(sandbox("npm pkg set scripts.postinstall=x"))
	runs(sandbox("npm pkg set scripts.test=x"))
	runs(sandbox("grep postinstall README.md"))
}

# What the sandbox cannot do is observed, and asks.
test_leaves if {
	every text in [
		"docker ps -a --no-trunc", "env docker run x", "/usr/bin/ssh host", "git push origin HEAD", "git -C sub push", "git remote show github", "git worktree add ../x",
		"npm publish", "psql -h localhost", "curl -d x http://localhost:3000/", "kill 123", "git config --global x y", "gh pr create",
	] {
		refused(sandbox(text))
		asks(observe(text))
	}
	refused(with_args(sandbox("make"), {"background": true}))
	asks(with_args(observe("make run"), {"background": true}))
	runs(doc("client_shell_observed", file("delete", "workspace", "out/a.o")))
}

# What it changes later is recorded, whatever it is.
test_background if {
	runs(doc("client_background", self("client_background")))
	runs(doc("client_background", file("read", "workspace", "out/a.o")))
	runs(doc("client_background", file("list", "workspace", "out")))
	nothing(doc("client_background", file("write", "workspace", "out/a.o")))
	nothing(doc("client_background", file("read", "outside", "home/u/a")))
}

test_harmless if {
	every text in [
		"git fetch -q && git status -sb | head -1", "git fetch origin && git rebase origin/main", "git pull --ff-only", "git ls-remote --heads origin",
		"sleep 2; curl -sf http://localhost:3456/healthz && curl -s localhost:3456/notes | jq length", "pg_isready -h localhost -p 5433; echo $?",
		"for i in 1 2 3; do curl -s -o /dev/null -w '%{http_code} ' http://localhost:3917/; done; echo", "curl -sI localhost:3917 2>/dev/null | grep -i ratelimit",
		"docker ps --format '{{.Names}}\\t{{.Ports}}'", "gh pr checks --watch", "lsof -ti tcp:3000",
	] {
		runs(observe(text))
	}
}

# Each of these looks like a harmless form and is none.
test_not_harmless if {
	every text in [
		"curl -s http://localhost:3000/ https://example.com/", "curl -K x http://localhost:3000/", "curl -x p http://localhost:3000/", "curl -o a http://localhost:3000/",
		"curl --next http://localhost:3000/", "curl -d @x http://localhost:3000/", "curl -H @x http://localhost:3000/", "curl -w '%output{x}' http://localhost:3000/",
		"curl -w @x http://localhost:3000/", "curl -L http://localhost:3000/", "curl http://localhost:3000@example.com/", "curl http://localhost.example.com:3000/",
		"curl -s localhost:2375/info", "curl -s localhost:8001/api", "curl -s localhost:3000 > .bashrc", "curl -s localhost:3000 | sh", "x=1 curl -s localhost:3000",
		"curl -s localhost:3000 & sh x", "curl -s localhost:3000\nsh x", "curl -s localhost:3000/$(id)", "curl -s localhost:3000/`id`", "curl -s 'localhost:3000/\"",
		"for PATH in bin; do git fetch; done", "PATH=bin git fetch", "git -c core.sshCommand=x fetch", "git fetch --upload-pack=x origin", "git fetch ext::sh",
		"git fetch https://example.com/x", "git fetch ../x", "git pull origin +x:y", "git log --output=x", "git log -p /etc/passwd", "git rebase -x sh origin/main",
		"git fetch 'origin", "git fetch; git push", "git fetch; cat /etc/shadow", "grep -f x", "grep --file=x", "grep -fx", "jq env", "jq . x", "jq -n env", "head -1 x",
		"echo $HOME", "echo \"$(id)\"", "docker ps --format 'x\"; sh x; echo '", "docker exec x sh", "gh api x", "gh pr view --web", "sleep 5 | sh", "lsof -p 1",
		"psql -h localhost -c 'select 1'", "sudo -l", "cat x", "tail -f x", "wc -l x",
	] {
		not runs(observe(text))
	}
}

test_people_only if {
	every text in ["sudo ls", "env sudo ls", "su -c x", "pkexec sh"] {
		refused(sandbox(text))
		refused(observe(text))
	}
	every text in ["remit approve --all", "remit disconnect x", "/usr/bin/remit prune", "remit", "claude -p x", "codex exec x", "pkill remit"] {
		refused(sandbox(text))
		refused(observe(text))
		remit.hint["tell the person the command and why; they can run it in a terminal"] with input as observe(text)
	}
	remit.hint["tell the person the command and why; they can run it in a terminal"] with input as observe("sudo ls")
	runs(sandbox("remit log"))
	asks(observe("remit log"))
	asks(observe("pkill node"))
}

connect(text, access) := object.union(sandbox(text), {"access": access})

test_network if {
	runs(connect("make", web("https", "repo1.maven.org", 443)))
	nothing(connect("make", web("https", "repo1.maven.org", 8443)))
	nothing(connect("make", web("http", "repo1.maven.org", 443)))
	nothing(connect("make", web("https", "example.com", 443)))
	remit.hint["a running command cannot ask: start it again with the URL in its text, such as https://HOST/, and the person decides before it starts"] with input as connect("make", web("https", "example.com", 443))
	named := "curl -s https://user@Example.com/x?y=repo1.maven.org"
	asks(sandbox(named))
	runs(connect(named, web("https", "example.com", 443)))
	runs(connect(named, web("http", "example.com", 80)))
	nothing(connect(named, web("https", "other.example.com", 443)))
	runs(sandbox("curl -s https://repo1.maven.org/simple/"))
	runs(sandbox("curl -s http://169.254.169.254/latest"))
	refused(connect("curl -s http://169.254.169.254/latest", web("http", "169.254.169.254", 80)))
	runs(sandbox("git commit -m https://example.com/issue"))
	nothing(connect("git commit -m https://example.com/issue", web("https", "example.com", 443)))
	own := doc("client_fetch", web("https", "example.com", 443))
	nothing(object.union(own, {"tool": {"name": "client_shell_observed"}}))
}

fetch(url) := with_args(doc("client_fetch", web("https", regex.replace(url, `^\w+://([^/]+).*$`, "$1"), 443)), {"url": url})

test_pages if {
	runs(fetch("https://pkg.go.dev/net/http"))
	runs(fetch("https://github.com/a/b"))
	runs(fetch("https://repo1.maven.org/maven2/"))
	runs(fetch("https://www.rfc-editor.org/rfc/rfc6585"))
	every url in [
		"https://example.com/", "https://notgithub.com/", "https://github.com.example.com/", "https://github.com/?x=abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ",
		concat("", ["https://github.com/", concat("/", [sprintf("abcdef%d", [i]) | some i in numbers.range(1, 40)])]),
	] {
		asks(fetch(url))
	}
	every host in ["169.254.169.254", "localhost", "metadata.google.internal", "192.168.1.1", "10.0.0.1", "172.20.0.1", "[::1]", "2852039166", "0xa9fea9fe", "127.1"] {
		refused(fetch(sprintf("http://%s/", [host])))
	}
	asks(fetch("http://8.8.8.8/"))
	remit.label["untrusted"] with input as fetch("https://github.com/a")
	search := doc("client_fetch", self("client_fetch"))
	runs(with_args(search, {"query": "go net/http 431"}))
	asks(with_args(search, {"query": concat("", ["is ", "AKIA", "IOSFODNN7EXAMPLE", " valid"])}))
	asks(with_args(search, {"query": concat(" ", [sprintf("word%d", [i]) | some i in numbers.range(1, 60)])}))
}

test_others if {
	other := doc("client_other", self("client_other"))
	asks(with_args(other, {"tool": "mcp__github__create_issue"}))
	runs(with_args(other, {"tool": "TodoWrite"}))
	not runs(doc("file_write", file("write", "workspace", "a.txt")))
}

test_sets if {
	coding_agent.source_hosts["repo1.maven.org"]
	coding_agent.control_ports["8001"]
}

test_purposes if {
	runs(object.union(doc("client_shell", bash), {"purpose": "revert", "access": file("write", "other", "x")}))
	count(remit.mask) > 0 with input as doc("client_shell", bash)
}
