package agentclients_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// action is one call of an agent's tool.
type action struct{ do, path, old, new string }

func editOf(path, from, to string) action { return action{"edit", path, from, to} }
func fresh(path, content string) action   { return action{"create", path, "", content} }
func anew(path, content string) action    { return action{"rewrite", path, "", content} }
func runs(command string) action          { return action{do: "shell", new: command} }

// undoStep is one prompt of the benchmark.
type undoStep struct {
	name, about string
	prepare     func(w undoSpace)
	actions     []action
	// person is what a person changes after the step, or while a command waits.
	person func(w undoSpace)
	// during: person acts while the command waits. kill: the agent dies then.
	during, kill bool
	// late: the command has ended before the work has.
	late bool
}

// undoSpace is the folder of a project.
type undoSpace struct{ dir string }

// waiting is the command with which a command waits until it is ended.
const waiting = "sleep 31.4159"

func undoSteps() []undoStep {
	return append(append(editSteps(), commandSteps()...), besideSteps()...)
}

func editSteps() []undoStep {
	return []undoStep{
		{name: "edit", about: "replaces a line", actions: []action{editOf("src/main.txt", "two", "2")}},
		{name: "multi edit", about: "three edits in two files", actions: []action{editOf("src/main.txt", "two", "2"), editOf("src/main.txt", "nine", "9"), editOf("src/other.txt", "other", "OTHER")}},
		{name: "create", about: "a new file", actions: []action{fresh("src/new.txt", "new\n")}},
		{name: "create below", about: "a new file in new folders", actions: []action{fresh("x/y/new.txt", "new\n")}},
		{name: "rewrite", about: "all of a file", actions: []action{anew("README.md", "other\n")}},
		{name: "edit a program", about: "a file with mode 0755", actions: []action{editOf("bin/tool", "echo tool", "echo other")}},
		{name: "edit a private file", about: "a file with mode 0600", actions: []action{editOf("src/deep/b.txt", "b", "B")}},
		{name: "edit an ignored file", about: ".gitignore names it", actions: []action{editOf("notes.log", "a log", "no log")}},
		{name: "edit a hard link", about: "one of two names of a file", actions: []action{editOf("pair.txt", "two names", "2 names")}},
		{name: "edit and command", about: "both in one prompt", actions: []action{editOf("src/main.txt", "two", "2"), runs("echo more >> README.md; rm src/deep/a.txt")}},
	}
}

func commandSteps() []undoStep {
	return []undoStep{
		{name: "mv", about: "renames a file", actions: []action{runs("mv src/main.txt src/renamed.txt")}},
		{name: "mv of a folder", about: "with its content", actions: []action{runs("mv src source")}},
		{name: "rm", about: "a file with mode 0600", actions: []action{runs("rm src/deep/b.txt")}},
		{name: "rm -rf", about: "a folder", actions: []action{runs("rm -rf src")}},
		{name: "rm -rf *", about: "all but hidden files", actions: []action{runs("rm -rf ./*")}},
		{name: "chmod", about: "of two files", actions: []action{runs("chmod 0600 README.md; chmod a-x bin/tool")}},
		{name: "symlink", about: "another target", actions: []action{runs("ln -sfn src/other.txt link")}},
		{name: "hard link", about: "deletes one of two names", actions: []action{runs("rm pair.twin")}},
		{name: "xattr", about: "deletes a file with an extended attribute", actions: []action{runs("rm src/other.txt")}, prepare: func(w undoSpace) {
			must(unix.Setxattr(w.path("src/other.txt"), "user.origin", []byte("here"), 0))
		}},
		{name: "rmdir", about: "an empty folder", actions: []action{runs("rmdir empty")}, prepare: func(w undoSpace) { must(os.Mkdir(w.path("empty"), 0o755)) }},
		{name: "mkdir", about: "folders of three levels", actions: []action{runs("mkdir -p x/y/z")}},
		{name: "touch", about: "the time of a file", actions: []action{runs("touch -d 2020-01-01 README.md")}},
		{name: "sed -i", about: "three files", actions: []action{runs("sed -i s/o/0/ src/main.txt src/other.txt README.md")}},
		{name: "git commit", about: "in the user's repository", actions: []action{runs("echo more >> README.md; git add -A; git commit -qm third")}},
		{name: "git reset --hard", about: "with uncommitted work of the user", actions: []action{runs("git reset -q --hard HEAD~1")}, prepare: func(w undoSpace) { w.runs("echo mine >> src/main.txt") }},
		{name: "git gc", about: "drops a commit that no branch has", actions: []action{runs("git reflog expire --expire=now --all; git gc -q --prune=now")}, prepare: func(w undoSpace) {
			w.runs("git commit -q --allow-empty -m dropped; git reset -q --hard HEAD~1")
		}},
		{name: "tar x", about: "unpacks over the tree", actions: []action{runs("tar xf new.tar")}, prepare: func(w undoSpace) {
			w.runs("mkdir -p t/src; echo tarred > t/src/main.txt; echo new > t/src/tar.txt; tar cf new.tar -C t .; rm -r t")
		}},
		{name: "node_modules", about: "changes and deletes ignored dependencies", actions: []action{runs("echo broken > node_modules/dep/index.js; rm -rf node_modules/other")}},
		{name: "large file", about: "deletes 12 MB", actions: []action{runs("rm big.bin")}, prepare: func(w undoSpace) {
			must(os.WriteFile(w.path("big.bin"), bytes.Repeat([]byte("0123456789abcdef"), 3<<18), 0o644))
		}},
		{name: "new large file", about: "creates 12 MB", actions: []action{runs("head -c 12582912 /dev/zero | tr '\\0' x > big.bin")}},
		{name: "binary", about: "rewrites a file that is not text", actions: []action{runs(`printf 'a\000b\377' > data.bin`)}},
		{
			name: "sqlite", about: "changes rows of a database file", actions: []action{runs("sqlite3 app.db 'UPDATE t SET a = a + 1; DELETE FROM t WHERE a = 3'")},
			prepare: func(w undoSpace) { w.runs("sqlite3 app.db 'CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2)'") },
		},
		{name: "failing command", about: "exit 3 after two changes", actions: []action{runs("echo x > README.md; rm src/main.txt; exit 3")}},
	}
}

func besideSteps() []undoStep {
	main := editOf("src/main.txt", "two", "2")
	readme := func(w undoSpace) { w.put("README.md", "theirs\n") }
	lines := func(w undoSpace) { w.replace("src/main.txt", "nine", "their nine") }
	return []undoStep{
		{name: "person: other file", about: "edited after the agent's edit", actions: []action{main}, person: readme},
		{name: "person: other file, command", about: "edited after the agent's rm", actions: []action{runs("rm src/main.txt")}, person: readme},
		{name: "person: other lines", about: "of the file that the agent edited", actions: []action{main}, person: lines},
		{name: "person: other lines, command", about: "of the file that sed changed", actions: []action{runs("sed -i s/two/2/ src/main.txt")}, person: lines},
		{name: "person: same line", about: "theirs has to stay", actions: []action{main}, person: func(w undoSpace) { w.put("src/main.txt", strings.Replace(tenLines, "two", "their two", 1)) }},
		{name: "person: new file", about: "in a folder that the agent made", actions: []action{fresh("made/ours.txt", "ours\n")}, person: func(w undoSpace) { w.put("made/theirs.txt", "theirs\n") }},
		{name: "person: new file, command", about: "an untracked one, after the agent's rm", actions: []action{runs("rm src/main.txt")}, person: func(w undoSpace) { w.put("theirs.txt", "theirs\n") }},
		{name: "person: empty folder", about: "theirs, beside the agent's edit", actions: []action{main}, prepare: func(w undoSpace) { must(os.Mkdir(w.path("theirs"), 0o755)) }},
		{name: "person: meanwhile", about: "another file, while a command runs", actions: []action{runs("echo x > src/main.txt; " + waiting + "; echo y > src/other.txt")}, person: readme, during: true},
		{name: "kill -9", about: "of the agent, in a command between two changes", actions: []action{runs("echo x > README.md; " + waiting + " && echo y > src/main.txt")}, kill: true},
		{name: "background", about: "a process that writes after the command has ended", late: true, actions: []action{
			runs("echo now > README.md; nohup sh -c '" + waiting + "; echo late > late.txt' > /dev/null 2>&1 & true"),
		}},
	}
}

const tenLines = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (w undoSpace) path(name string) string { return filepath.Join(w.dir, name) }

// put writes a file as a person does. Its time is always the same one.
func (w undoSpace) put(name, content string) {
	must(os.MkdirAll(filepath.Dir(w.path(name)), 0o755))
	must(os.WriteFile(w.path(name), []byte(content), 0o644))
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	must(os.Chtimes(w.path(name), at, at))
}

func (w undoSpace) replace(name, from, to string) {
	text, err := os.ReadFile(w.path(name))
	must(err)
	w.put(name, strings.Replace(string(text), from, to, 1))
}

// sh runs a command as the person.
func (w undoSpace) runs(script string) string {
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir, cmd.Env = w.dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0",
		"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		panic(fmt.Sprintf("%v: %s", err, out))
	}
	return string(out)
}

// newUndoSpace makes the project before a step.
func newUndoSpace(dir string, step undoStep) undoSpace {
	w := undoSpace{dir}
	must(os.MkdirAll(dir, 0o755))
	for name, text := range map[string]string{
		"README.md": "# A project\n\nHello, world.\n", "src/main.txt": tenLines, "src/other.txt": "other\n", "src/deep/a.txt": "a\n", "src/deep/b.txt": "b\n",
		"bin/tool": "#!/bin/sh\necho tool\n", "pair.txt": "a file of two names\n", "data.bin": "\x00\x01\xff\xfe binary \x00", ".gitignore": "node_modules/\n*.log\n",
		"node_modules/dep/index.js": "dep\n", "node_modules/other/index.js": "other\n", "notes.log": "a log\n",
	} {
		w.put(name, text)
	}
	must(os.Chmod(w.path("src/deep/b.txt"), 0o600))
	must(os.Chmod(w.path("bin/tool"), 0o755))
	must(os.Symlink("src/main.txt", w.path("link")))
	must(os.Link(w.path("pair.txt"), w.path("pair.twin")))
	w.runs(`git init -q -b main .; git config user.name bench; git config user.email bench@example.com; git config gc.auto 0
		git add -A; git commit -qm first; echo more >> src/other.txt; git commit -qam second`)
	if step.prepare != nil {
		step.prepare(w)
	}
	w.runs("find . -path ./.git -prune -o -exec touch -h -d 2026-01-02T03:04:05 {} +")
	return w
}

// repository describes the repository as its user sees it. Programs write caches
// to it that nobody can see.
func (w undoSpace) repository() string {
	return w.runs(`git rev-parse --abbrev-ref HEAD; git for-each-ref | grep -v refs/cline/ || true; git ls-files -s; cat .git/config; ls .git/hooks
		git reflog 2>/dev/null | head -c 1 | wc -c
		for c in $(git fsck --no-progress --no-reflogs 2>/dev/null | sed -n 's/dangling commit //p'); do git log -1 --format='%H %s' $c | grep dropped || true; done`)
}

// endWaiting ends all commands that wait, and reports whether there were some.
// Only those of this benchmark have a working folder below dir.
func endWaiting(dir string, end bool) (found bool) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines {
		line, err := os.ReadFile(name)
		if err != nil || string(line) != strings.ReplaceAll(waiting, " ", "\x00")+"\x00" {
			continue
		}
		at, err := os.Readlink(filepath.Join(filepath.Dir(name), "cwd"))
		if err != nil || !strings.HasPrefix(at, dir) {
			continue
		}
		found = true
		var pid int
		if _, err := fmt.Sscanf(name, "/proc/%d/", &pid); err == nil && end {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return found
}

// eventually waits until something is so, for at most a while.
func eventually(so func() bool, while time.Duration) bool {
	for end := time.Now().Add(while); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if so() {
			return true
		}
	}
	return so()
}
