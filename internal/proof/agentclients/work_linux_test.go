package agentclients_test

import (
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/remit-dev/remit/internal/proof/agentclients"
	"github.com/remit-dev/remit/internal/proof/fakemodel"
)

// step is one use of a tool, which each client has under names of its own.
type step struct {
	kind       string // sh, write, over, edit, read, search or fetch
	path, text string // over: also the old content; edit: the new text
	old        string
	seconds    int  // time limit of a command
	background bool // the client does not wait for the command
}

func sh(command string) step            { return step{kind: "sh", text: command} }
func writes(path, text string) step     { return step{kind: "write", path: path, text: text} }
func edits(path, from, to string) step  { return step{kind: "edit", path: path, old: from, text: to} }
func reads(path string) step            { return step{kind: "read", path: path} }
func searches(pattern string) step      { return step{kind: "search", text: pattern} }
func fetches(url string) step           { return step{kind: "fetch", text: url} }
func within(seconds int, c string) step { return step{kind: "sh", text: c, seconds: seconds} }
func behind(command string) step        { return step{kind: "sh", text: command, background: true} }

func replaces(path, old, new string) step { return step{kind: "over", path: path, old: old, text: new} }

// call returns the step as the client's tool.
func (s step) call(client, dir string) fakemodel.Call {
	at := filepath.Join(dir, s.path)
	if filepath.IsAbs(s.path) {
		at = s.path
	}
	switch client {
	case "claude-code":
		return s.claude(at)
	case "codex":
		return s.codex()
	case "gemini-cli":
		return s.gemini(at)
	default:
		return s.opencode(at)
	}
}

func (s step) claude(at string) fakemodel.Call {
	switch s.kind {
	case "sh":
		in := object{"command": s.text, "description": "run a command"}
		if s.seconds > 0 {
			in["timeout"] = s.seconds * 1000
		}
		if s.background {
			in["run_in_background"] = true
		}
		return agentclients.Call("Bash", in)
	case "write", "over":
		return agentclients.Call("Write", object{"file_path": at, "content": s.text})
	case "edit":
		return agentclients.Call("Edit", object{"file_path": at, "old_string": s.old, "new_string": s.text})
	case "read":
		return agentclients.Call("Read", object{"file_path": at})
	case "search":
		return agentclients.Call("Bash", object{"command": "grep -rn " + s.text + " .", "description": "search"})
	default:
		return agentclients.Call("WebFetch", object{"url": s.text, "prompt": "what does it say"})
	}
}

func (s step) codex() fakemodel.Call {
	shell := func(command string) fakemodel.Call {
		return agentclients.Call("exec_command", object{"cmd": command, "yield_time_ms": 20000})
	}
	patch := func(lines ...string) fakemodel.Call {
		return agentclients.Call("apply_patch", "*** Begin Patch\n"+strings.Join(lines, "\n")+"\n*** End Patch\n")
	}
	switch s.kind {
	case "sh":
		if s.background || s.seconds > 0 {
			return agentclients.Call("exec_command", object{"cmd": s.text, "yield_time_ms": 1500})
		}
		return shell(s.text)
	case "write":
		return patch("*** Add File: "+s.path, prefixed("+", s.text))
	case "over":
		return patch("*** Update File: "+s.path, "@@", prefixed("-", s.old), prefixed("+", s.text))
	case "edit":
		return patch("*** Update File: "+s.path, "@@", prefixed("-", s.old), prefixed("+", s.text))
	case "read":
		return shell("cat " + s.path)
	case "search":
		return shell("grep -rn " + s.text + " .")
	default:
		return shell("python3 -c \"import urllib.request as u; print(u.urlopen('" + s.text + "').read())\"")
	}
}

// prefixed puts a mark before each line.
func prefixed(mark, text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return mark + strings.Join(lines, "\n"+mark)
}

func (s step) gemini(at string) fakemodel.Call {
	switch s.kind {
	case "sh":
		in := object{"command": s.text}
		if s.background {
			in["is_background"] = true
		}
		if s.seconds > 0 {
			in["is_background"] = true // it has no time limit of one command
		}
		return agentclients.Call("run_shell_command", in)
	case "write", "over":
		return agentclients.Call("write_file", object{"file_path": at, "content": s.text})
	case "edit":
		return agentclients.Call("replace", object{"file_path": at, "instruction": "change", "old_string": s.old, "new_string": s.text})
	case "read":
		return agentclients.Call("read_file", object{"file_path": at})
	case "search":
		return agentclients.Call("grep_search", object{"pattern": s.text})
	default:
		return agentclients.Call("web_fetch", object{"prompt": "what does " + s.text + " say", "url": s.text})
	}
}

func (s step) opencode(at string) fakemodel.Call {
	switch s.kind {
	case "sh":
		in := object{"command": s.text, "description": "run a command"}
		if s.seconds > 0 {
			in["timeout"] = s.seconds * 1000
		}
		if s.background {
			in["command"] = s.text + " > /dev/null 2>&1 &"
		}
		return agentclients.Call("bash", in)
	case "write", "over":
		return agentclients.Call("write", object{"filePath": at, "content": s.text})
	case "edit":
		return agentclients.Call("edit", object{"filePath": at, "oldString": s.old, "newString": s.text})
	case "read":
		return agentclients.Call("read", object{"filePath": at})
	case "search":
		return agentclients.Call("grep", object{"pattern": s.text})
	default:
		return agentclients.Call("webfetch", object{"url": s.text, "format": "text"})
	}
}

// piece is one prompt of real work.
type piece struct {
	name  string
	turns [][]step
	// done is a command of a shell that fails unless the work was done, run
	// after the prompt in the workspace. Empty: nothing is expected.
	done string
	// late are the files of commands that run on after the prompt.
	late []string
}

// runsOn says what the commands of a piece make after the prompt.
func (p piece) runsOn(files ...string) piece {
	p.late = files
	return p
}

// alone makes each step a message of its own.
func alone(name, done string, steps ...step) piece {
	p := piece{name: name, done: done}
	for _, s := range steps {
		p.turns = append(p.turns, []step{s})
	}
	return p
}

// together makes one message of all steps.
func together(name, done string, steps ...step) piece {
	return piece{name: name, done: done, turns: [][]step{steps}}
}

const git = `git -C repo -c user.name=a -c user.email=a@example.com `

// goProgram returns the path of go: a login shell has a PATH of its own.
func goProgram() string {
	name, err := exec.LookPath("go")
	if err != nil {
		return "go"
	}
	return name
}

// work returns the prompts of one session, in order. Some need the work of
// those before.
func work() []piece {
	return append(fileWork(), append(programWork(), otherWork()...)...)
}

func fileWork() []piece {
	return []piece{
		alone("write a file", "grep -q hello a.txt", writes("a.txt", "hello\n")),
		alone("edit a file", "grep -q TWO notes.txt", reads("notes.txt"), edits("notes.txt", "two", "TWO")),
		alone("edit several files", "grep -q 1 x/1.txt && grep -q 2 x/y/2.txt && grep -q ONE notes.txt",
			writes("x/1.txt", "1\n"), writes("x/y/2.txt", "2\n"), reads("notes.txt"), edits("notes.txt", "one", "ONE")),
		together("several calls in one message", "test -e m1 && test -e m2 && test -e m3.txt", sh("echo 1 > m1"), sh("echo 2 > m2"), writes("m3.txt", "3\n")),
		together("several edits in one message", "test -e e1.txt && test -e e2.txt && test -e e3.txt", writes("e1.txt", "1\n"), writes("e2.txt", "2\n"), writes("e3.txt", "3\n")),
		alone("overwrite a file", "grep -q replaced a.txt", reads("a.txt"), replaces("a.txt", "hello\n", "replaced\n")),
		alone("delete a folder", "test ! -e x", sh("rm -rf x")),
		alone("move files and folders", "test -e moved/b.txt && test -e n2.txt", sh("mv sub moved; mv notes.txt n2.txt")),
		alone("change modes", "test -x a.txt", sh("chmod 755 a.txt; chmod 700 moved; chmod 444 n2.txt")),
		alone("make links", "test -L dangling && test a.txt -ef hard", sh("ln -s a.txt soft; ln -s nowhere dangling; ln -s /etc/hostname abs; ln a.txt hard; ln -s moved folder")),
		alone("write through a link", "grep -q linked a.txt", sh("echo linked >> soft"), sh("echo through > folder/new.txt")),
		alone("unicode names", "test -e 'ünï/日本 語.txt'", sh("mkdir 'ünï'; echo x > 'ünï/日本 語.txt'; echo y > $'new\\nline'; echo z > ./-dash; echo q > \"it's\"; echo b > 'back\\slash'"), writes("ünï/ß.txt", "ß\n")),
		alone("empty folders", "test -d empty/deep/er && test ! -e keep", sh("mkdir -p empty/deep/er; rmdir keep")),
		alone("binary files", "test -s bin.dat", sh("head -c 3000000 /dev/urandom > bin.dat; cp bin.dat copy.dat; printf '\\0\\1\\2' | dd of=copy.dat bs=1 seek=1000 conv=notrunc")),
		alone("sparse files and odd times", "test -e sparse", sh("truncate -s 10M sparse; echo end >> sparse; touch -d '2001-02-03 04:05:06.789' copy.dat; truncate -s 5 bin.dat")),
		alone("many files", "test -e many/d50/f10", sh("for d in $(seq 50); do mkdir -p many/d$d; for f in $(seq 10); do echo $d $f > many/d$d/f$f; done; done")),
		alone("change many files", "test ! -e many/d1 && grep -q changed many/d2/f1", sh("sed -i 's/^/changed /' many/d2/*; rm -r many/d1; mv many/d3 many/d1x; chmod -R go-r many/d4")),
		alone("replace a file by a folder", "test -d n2.txt && test -L many/d5", sh("rm -f n2.txt; mkdir n2.txt; echo x > n2.txt/x; rm -r many/d5; ln -s d6 many/d5")),
		alone("archives", "test -e unpacked/many/d9/f1", sh("tar cf all.tar many; mkdir unpacked; tar xf all.tar -C unpacked; cp -a many/d7 many/d7copy")),
	}
}

func programWork() []piece {
	return []piece{
		alone("git init and commit", git+"log | grep -q first", sh("git init -q -b main repo; cd repo; seq 40 > f.txt; echo '*.o' > .gitignore"), sh(git+"add -A"), sh(git+"commit -q -m first")),
		alone("git branch", git+"log side | grep -q side", sh(git+"checkout -q -b side; echo side >> repo/f.txt; "+git+"commit -qam side; "+git+"checkout -q main; echo main > repo/g.txt; "+git+"add g.txt; "+git+"commit -q -m main")),
		alone("git rebase", git+"log side | grep -q main", sh(git+"rebase -q main side")),
		alone("git stash", "! grep -q stashed repo/f.txt", sh("echo stashed >> repo/f.txt; "+git+"stash -q"), sh(git+"stash list")),
		alone("git stash pop", "grep -q stashed repo/f.txt", sh(git+"stash pop -q")),
		alone("git reset", "! grep -q stashed repo/f.txt", sh(git+"reset -q --hard HEAD~1")),
		alone("git conflict", "grep -q '<<<<' repo/f.txt", sh(git+"checkout -q -b c1; sed -i 1s/.*/c1/ repo/f.txt; "+git+"commit -qam c1; "+git+"checkout -q main; sed -i 1s/.*/m/ repo/f.txt; "+git+"commit -qam m; "+git+"merge c1")),
		alone("git gc", "test -e repo/.git/packed-refs", sh(git+"merge --abort; "+git+"gc -q; "+git+"tag -a v1 -m v1; "+git+"worktree list")),
		alone("npm install", "test -e web/node_modules/dep/index.js", sh(`mkdir -p dep web; echo '{"name":"dep","version":"1.0.0"}' > dep/package.json; echo 'module.exports=1' > dep/index.js; `+
			`echo '{"name":"web","version":"1.0.0","dependencies":{"dep":"file:../dep"}}' > web/package.json`), sh("cd web; npm install --no-audit --no-fund; ls")),
		alone("make", "test -e made/out", sh("mkdir made; printf 'out: in\\n\\tcp in out\\nin:\\n\\techo in > in\\n' > made/Makefile; make -C made")),
		alone("go build", "test -x gomod/gomod", sh("mkdir gomod; cd gomod; printf 'module example.com/gomod\\n\\ngo 1.21\\n' > go.mod; printf 'package main\\n\\nfunc main() { println(1) }\\n' > main.go; GOPROXY=off GOTOOLCHAIN=local "+goProgram()+" build -o gomod .")),
		alone("gcc", "test -x prog", sh("printf '#include <stdio.h>\\nint main(void) { puts(\"hi\"); return 0; }\\n' > prog.c; gcc -o prog prog.c; ./prog")),
	}
}

func otherWork() []piece {
	return []piece{
		alone("fail after a change", "test -e half", sh("echo half > half; rm a.txt; exit 7")),
		alone("a command that hangs", "", within(2, "echo started > hang.txt; sleep 20; echo ended > hang.txt")).runsOn("hang.txt"),
		alone("long output", "test -e long.txt", sh("seq 200000 | tee long.txt")),
		alone("a background server", "", behind("echo serving > server.txt; exec python3 -m http.server 8099 --bind 127.0.0.1"), sh("sleep 1; echo after > after.txt")).runsOn("server.txt"),
		alone("read and search", "", reads("hard"), searches("changed"), sh("ls -la; cat prog.c; wc -l long.txt")),
		alone("fetch a page", "", fetches("http://127.0.0.1:4141/page"), sh("echo fetched > fetched.txt")),
		alone("write denied files", "test ! -e .env && test ! -e repo/.git/hooks/pre-push", writes(".env", "KEY=1\n"), writes("repo/.git/hooks/pre-push", "#!/bin/sh\n"), sh("echo a > beside.txt; echo KEY=2 > .env")),
		alone("write outside", "test ! -e ../outside.txt", writes("../outside.txt", "x\n"), sh("echo x > ../outside.txt; echo in > inside.txt")),
		alone("ask for a file that starts programs", "test ! -e .mcp.json", writes(".mcp.json", "{}\n"), sh("echo {} > .mcp.json")),
		alone("change the folder", "test -e moved/here.txt -o -e here.txt", sh("cd moved && pwd"), sh("echo here > here.txt; mkfifo pipe")),
		alone("undo its own work", "test ! -e temporary", sh("echo x > temporary; mkdir tmpdir"), sh("rm temporary; rmdir tmpdir; touch half")),
	}
}
