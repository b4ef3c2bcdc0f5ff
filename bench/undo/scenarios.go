package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func shell(script string) []step { return []step{{Do: "shell", Script: script}} }

func edit(path, from, to string) step { return step{Do: "edit", Path: path, Old: from, New: to} }

func write(path, content string) step {
	return step{Do: "write", Path: path, Content: []byte(content)}
}

func sql1(statement string) []step { return []step{{Do: "sql", Script: statement}} }

// scenarios returns the side effects, simple ones first.
func scenarios() []scenario {
	return append(append(append(fileEffects(), programEffects()...), otherEffects()...), failureScenarios()...)
}

func fileEffects() []scenario {
	return []scenario{
		{name: "edit", about: "replaces a text in a file", steps: []step{edit("src/main.txt", "two", "2")}},
		{name: "rewrite", about: "replaces the content of a file, creates another", steps: []step{write("README.md", "other\n"), write("src/new.txt", "new\n")}},
		{name: "binary", about: "deletes a file that is not text", steps: []step{{Do: "delete", Path: "data.bin"}}},
		{name: "rename", about: "renames a file", steps: []step{{Do: "move", Path: "src/main.txt", To: "src/renamed.txt"}}},
		{name: "rename folder", about: "renames a folder with its content", steps: []step{{Do: "move", Path: "src", To: "source"}}},
		{name: "delete", about: "deletes a file with mode bits 0600", steps: []step{{Do: "delete", Path: "src/deep/b.txt"}}},
		{name: "delete folder", about: "deletes a folder with its content", steps: []step{{Do: "delete", Path: "src"}}},
		{name: "empty folder", about: "deletes an empty folder", steps: []step{{Do: "delete", Path: "empty"}}},
		{name: "mkdir", about: "creates folders of three levels", steps: []step{{Do: "mkdir", Path: "x/y/z"}}},
		{name: "ignored file", about: "rewrites and deletes files that .gitignore names", steps: []step{write("notes.log", "other\n"), {Do: "delete", Path: "cache"}}},
		{name: "name with a line break", about: "rewrites a file with a line break in its name", steps: []step{write("new\nline.txt", "other\n")}},
		{name: "symlink", about: "deletes a link", steps: []step{{Do: "delete", Path: "link"}}},
		{name: "hard link", about: "deletes one of two names of a file", steps: []step{{Do: "delete", Path: "pair.twin"}}},
		{
			name: "extended attribute", about: "deletes a file with an extended attribute", steps: []step{{Do: "delete", Path: "src/other.txt"}},
			prepare: func(w *testEnv) error {
				return unix.Setxattr(w.path("src/other.txt"), "user.origin", []byte("here"), 0)
			},
		},
		{
			name: "sparse file", about: "deletes 64 MiB with 4 KiB of data", steps: []step{{Do: "delete", Path: "sparse.img"}},
			prepare: func(w *testEnv) error {
				return errors.Join(os.WriteFile(w.path("sparse.img"), bytes.Repeat([]byte{7}, 4096), 0o644), os.Truncate(w.path("sparse.img"), 64<<20))
			},
		},
		{
			name: "large file", about: "deletes 32 MiB", steps: []step{{Do: "delete", Path: "large.bin"}},
			prepare: func(w *testEnv) error {
				return os.WriteFile(w.path("large.bin"), bytes.Repeat([]byte("0123456789abcdef"), 2<<20), 0o644)
			},
		},
		{name: "time of a file", about: "rewrites a file; its time counts", steps: []step{write("README.md", "other\n")}, times: true},
	}
}

func programEffects() []scenario {
	return []scenario{
		{name: "chmod", about: "by a program", steps: shell("chmod 0600 README.md; chmod u-x,g+s bin/tool")},
		{name: "link by a program", about: "changes the target of a link", steps: shell("ln -sfn src/other.txt link; ln README.md third")},
		{name: "touch", about: "sets the time of a file by a program", steps: shell("touch -d 2020-01-01 README.md"), times: true},
		{name: "shell script", about: "creates, changes, moves and deletes files", steps: shell("mkdir out; cp src/main.txt out/; echo x >> README.md; mv data.bin out/; rm src/deep/a.txt; rmdir empty")},
		{name: "sed -i", about: "over several files", steps: shell("sed -i s/o/0/ src/main.txt src/other.txt README.md")},
		{
			name: "tar x", about: "unpacks an archive over the tree", steps: shell("tar xf cache/new.tar"),
			prepare: func(w *testEnv) error {
				return w.sh("mkdir -p t/src && echo tarred > t/src/main.txt && echo new > t/src/tar.txt && tar cf cache/new.tar -C t . && rm -r t")
			},
		},
		{name: "git commit", about: "in the user's own repository", steps: shell("echo more >> README.md; git add -A; git commit -qm third")},
		{
			name: "git reset --hard", about: "with uncommitted changes", steps: shell("git reset -q --hard HEAD~1"),
			prepare: func(w *testEnv) error { return w.sh("echo mine >> src/main.txt") },
		},
		{
			name: "git gc", about: "drops unreachable commits", steps: shell("git reflog expire --expire=now --all; git gc -q --prune=now"),
			prepare: func(w *testEnv) error {
				return w.sh("git commit -q --allow-empty -m dropped; git reset -q --hard HEAD~1")
			},
		},
		{name: "file outside", about: "writes outside the workspace by a program", steps: shell("echo x > ../outside/made.txt; echo y > here.txt")},
		{name: "script fails half-way", about: "after two changed files", steps: shell("echo x > README.md; rm src/main.txt; exit 1")},
	}
}

func otherEffects() []scenario {
	return []scenario{
		{name: "SQL insert", about: "two rows", steps: sql1("INSERT INTO users (name, age) VALUES ('dan', 50), ('eve', 60)")},
		{name: "SQL update", about: "all rows of a table", steps: sql1("UPDATE users SET age = age + 1, name = upper(name)")},
		{name: "SQL delete", about: "one row", steps: sql1("DELETE FROM posts WHERE id = 2")},
		{name: "SQL drop", about: "a table", steps: sql1("DROP TABLE posts")},
		{name: "HTTP create, with a key", about: "the service names the item", steps: []step{{Do: "post", Text: "made", Key: "k-1"}}},
		{name: "HTTP create, without", about: "no idempotency key", steps: []step{{Do: "post", Text: "made"}}},
		{name: "HTTP change", about: "sets an item, removes another", steps: []step{{Do: "put", Item: "second", Text: "made"}, {Do: "put", Item: "first", Text: "changed"}}},
		{name: "message", about: "sends a message, which has no inverse", steps: []step{write("README.md", "other\n"), {Do: "message", Text: "hello"}}},
		{name: "files, rows and HTTP", about: "one after the other", steps: []step{
			write("README.md", "other\n"), {Do: "sql", Script: "UPDATE users SET age = 1 WHERE id = 1"}, {Do: "post", Text: "made", Key: "k-2"}, {Do: "shell", Script: "rm -r src"},
		}},
	}
}

// asleep returns when the sleep of a script runs, in any process, or after a
// while: then the script has written its output.
func asleep(*testEnv, chan struct{}) {
	for range 4000 {
		lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range lines {
			if line, err := os.ReadFile(name); err == nil && string(line) == "sleep\x0031.4159\x00" {
				return
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func effect(_ *testEnv, began chan struct{}) {
	select {
	case <-began:
	case <-time.After(5 * time.Second): // the request was never sent
	}
}

// manyFiles creates a folder that takes a while to delete.
func manyFiles(w *testEnv) error {
	return w.sh("mkdir many; cd many; seq 1 2000 | split -l 1 -a 4 -")
}

// fewer returns when some of many files are gone, or restored, or after a
// while.
func fewer(w *testEnv, all int) {
	for range 2000 {
		entries, _ := os.ReadDir(w.path("many"))
		if len(entries) > 0 && len(entries) != all || len(entries) == 0 && all == 2000 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func put(name, content string) func(*testEnv) error {
	return func(w *testEnv) error { return os.WriteFile(w.path(name), []byte(content), 0o644) }
}

func failureScenarios() []scenario {
	main := edit("src/main.txt", "two", "2")
	return []scenario{
		{name: "killed in a script", about: "kill -9 during a program, after one changed file of two", steps: shell("echo x > README.md; sleep 31.4159; echo y > src/main.txt"), kill: 1, when: asleep},
		{name: "killed in a delete", about: "kill -9 during the deletion of 2000 files", prepare: manyFiles, steps: []step{{Do: "delete", Path: "many"}}, kill: 1, when: func(w *testEnv, _ chan struct{}) { fewer(w, 2000) }},
		{name: "killed in an undo", about: "kill -9 during the restore of 2000 files; undo again", prepare: manyFiles, steps: []step{{Do: "delete", Path: "many"}}, undoCut: func(w *testEnv) func() { return func() { fewer(w, 0) } }},
		{name: "killed between steps", about: "kill -9 after the second of two", steps: []step{main, write("src/new.txt", "new\n")}, between: true},
		{name: "killed in a request", about: "kill -9 after the service created the item, before its response; with a key", steps: []step{{Do: "post", Text: "made", Key: "k-3"}}, kill: 1, when: effect},
		{name: "killed in a request, no key", about: "the same without keys", steps: []step{{Do: "post", Text: "made"}}, kill: 1, when: effect},
		{name: "answer lost", about: "the service creates the item, the connection breaks, the agent repeats a failed step; with a key", steps: []step{{Do: "post", Text: "made", Key: "k-4"}}, lose: true},
		{name: "answer lost, no key", about: "the same without keys", steps: []step{{Do: "post", Text: "made"}}, lose: true},
		{name: "edited since", about: "another program rewrites the file after the agent's edit", steps: []step{main}, foreign: map[int]func(*testEnv) error{0: put("src/main.txt", "theirs\n")}},
		{name: "edited in between", about: "another program rewrites it between two edits of the agent", steps: []step{main, edit("src/main.txt", "theirs", "ours")}, foreign: map[int]func(*testEnv) error{0: put("src/main.txt", "theirs\n")}},
		{name: "another file edited", about: "another program rewrites a file that the agent did not touch", steps: []step{main}, foreign: map[int]func(*testEnv) error{0: put("README.md", "theirs\n")}},
		{name: "edited while it works", about: "another file, between two steps of the agent", steps: []step{main, write("src/new.txt", "new\n")}, foreign: map[int]func(*testEnv) error{0: put("README.md", "theirs\n")}},
		{name: "file in a folder that goes", about: "another program creates a file in a folder of the agent", steps: []step{{Do: "mkdir", Path: "made"}, write("made/ours.txt", "ours\n")}, foreign: map[int]func(*testEnv) error{1: put("made/theirs.txt", "theirs\n")}},
		{name: "row changed since", about: "another program changes the row after the agent", steps: sql1("UPDATE users SET age = 1 WHERE id = 1"), foreign: map[int]func(*testEnv) error{0: func(w *testEnv) error { return w.sql("UPDATE users SET age = 99 WHERE id = 1") }}},
		{name: "disk full", about: "a step does not fit; its partial file stays or goes", small: true, steps: []step{main, write("README.md", strings.Repeat("0123456789abcdef", 1<<20))}},
		{name: "two agents", about: "a second one edits another file in between", steps: []step{main, write("src/new.txt", "new\n")}, peer: map[int]step{0: edit("README.md", "Hello", "Bye")}},
		{name: "early step only", about: "reverts the first of two steps on two files", steps: []step{main, write("README.md", "other\n")}, ask: "first"},
		{name: "undo twice", about: "the second changes nothing", steps: []step{main, {Do: "delete", Path: "src/deep"}}, ask: "twice"},
		{name: "redo", about: "applies reverted steps again", steps: []step{main, {Do: "delete", Path: "src/deep"}}, ask: "redo"},
	}
}
