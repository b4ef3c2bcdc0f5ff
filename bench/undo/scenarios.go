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
	return append(append(append(fileEffects(), programEffects()...), otherEffects()...), mishaps()...)
}

func fileEffects() []scenario {
	return []scenario{
		{name: "edit", about: "a text in a file is replaced", steps: []step{edit("src/main.txt", "two", "2")}},
		{name: "rewrite", about: "a file gets other content, a new one is made", steps: []step{write("README.md", "other\n"), write("src/new.txt", "new\n")}},
		{name: "binary", about: "a file that is no text is deleted", steps: []step{{Do: "delete", Path: "data.bin"}}},
		{name: "rename", about: "a file gets another name", steps: []step{{Do: "move", Path: "src/main.txt", To: "src/renamed.txt"}}},
		{name: "rename folder", about: "a folder with all in it", steps: []step{{Do: "move", Path: "src", To: "source"}}},
		{name: "delete", about: "a file whose bits are 0600", steps: []step{{Do: "delete", Path: "src/deep/b.txt"}}},
		{name: "delete folder", about: "a folder with all in it", steps: []step{{Do: "delete", Path: "src"}}},
		{name: "empty folder", about: "an empty folder is deleted", steps: []step{{Do: "delete", Path: "empty"}}},
		{name: "mkdir", about: "folders three levels deep are made", steps: []step{{Do: "mkdir", Path: "x/y/z"}}},
		{name: "ignored file", about: "files that .gitignore names are rewritten and deleted", steps: []step{write("notes.log", "other\n"), {Do: "delete", Path: "cache"}}},
		{name: "name with a line break", about: "and its file rewritten", steps: []step{write("new\nline.txt", "other\n")}},
		{name: "symlink", about: "a link is deleted", steps: []step{{Do: "delete", Path: "link"}}},
		{name: "hard link", about: "one of two names of a file is deleted", steps: []step{{Do: "delete", Path: "pair.twin"}}},
		{
			name: "extended attribute", about: "a file that has one is deleted", steps: []step{{Do: "delete", Path: "src/other.txt"}},
			prepare: func(w *world) error { return unix.Setxattr(w.path("src/other.txt"), "user.origin", []byte("here"), 0) },
		},
		{
			name: "sparse file", about: "64 MiB of which 4 KiB are there, deleted", steps: []step{{Do: "delete", Path: "sparse.img"}},
			prepare: func(w *world) error {
				return errors.Join(os.WriteFile(w.path("sparse.img"), bytes.Repeat([]byte{7}, 4096), 0o644), os.Truncate(w.path("sparse.img"), 64<<20))
			},
		},
		{
			name: "large file", about: "32 MiB, deleted", steps: []step{{Do: "delete", Path: "large.bin"}},
			prepare: func(w *world) error {
				return os.WriteFile(w.path("large.bin"), bytes.Repeat([]byte("0123456789abcdef"), 2<<20), 0o644)
			},
		},
		{name: "time of a file", about: "a file is rewritten; its time counts", steps: []step{write("README.md", "other\n")}, times: true},
	}
}

func programEffects() []scenario {
	return []scenario{
		{name: "chmod", about: "by a program", steps: shell("chmod 0600 README.md; chmod u-x,g+s bin/tool")},
		{name: "link by a program", about: "a link is made to lead elsewhere", steps: shell("ln -sfn src/other.txt link; ln README.md third")},
		{name: "touch", about: "a program sets the time of a file", steps: shell("touch -d 2020-01-01 README.md"), times: true},
		{name: "shell script", about: "makes, changes, moves and deletes files", steps: shell("mkdir out; cp src/main.txt out/; echo x >> README.md; mv data.bin out/; rm src/deep/a.txt; rmdir empty")},
		{name: "sed -i", about: "over several files", steps: shell("sed -i s/o/0/ src/main.txt src/other.txt README.md")},
		{
			name: "tar x", about: "an archive is unpacked over the tree", steps: shell("tar xf cache/new.tar"),
			prepare: func(w *world) error {
				return w.sh("mkdir -p t/src && echo tarred > t/src/main.txt && echo new > t/src/tar.txt && tar cf cache/new.tar -C t . && rm -r t")
			},
		},
		{name: "git commit", about: "in the user's own repository", steps: shell("echo more >> README.md; git add -A; git commit -qm third")},
		{
			name: "git reset --hard", about: "with changes that were not committed", steps: shell("git reset -q --hard HEAD~1"),
			prepare: func(w *world) error { return w.sh("echo mine >> src/main.txt") },
		},
		{
			name: "git gc", about: "unreachable commits are dropped", steps: shell("git reflog expire --expire=now --all; git gc -q --prune=now"),
			prepare: func(w *world) error {
				return w.sh("git commit -q --allow-empty -m dropped; git reset -q --hard HEAD~1")
			},
		},
		{name: "file outside", about: "a program writes outside of the workspace", steps: shell("echo x > ../outside/made.txt; echo y > here.txt")},
		{name: "script fails half-way", about: "after it has changed two files", steps: shell("echo x > README.md; rm src/main.txt; exit 1")},
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
		{name: "HTTP change", about: "an item is set, another removed", steps: []step{{Do: "put", Item: "second", Text: "made"}, {Do: "put", Item: "first", Text: "changed"}}},
		{name: "message", about: "nobody can take it back", steps: []step{write("README.md", "other\n"), {Do: "message", Text: "hello"}}},
		{name: "files, rows and HTTP", about: "one after the other", steps: []step{
			write("README.md", "other\n"), {Do: "sql", Script: "UPDATE users SET age = 1 WHERE id = 1"}, {Do: "post", Text: "made", Key: "k-2"}, {Do: "shell", Script: "rm -r src"},
		}},
	}
}

// asleep returns when the sleep of a script runs, in any process, or after a
// while: then the script has written its output.
func asleep(*world, chan struct{}) {
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

func effect(_ *world, began chan struct{}) {
	select {
	case <-began:
	case <-time.After(5 * time.Second): // the request was never sent
	}
}

// manyFiles creates a folder that takes a while to delete.
func manyFiles(w *world) error {
	return w.sh("mkdir many; cd many; seq 1 2000 | split -l 1 -a 4 -")
}

// fewer returns when some of many files are gone, or restored, or after a
// while.
func fewer(w *world, all int) {
	for range 2000 {
		entries, _ := os.ReadDir(w.path("many"))
		if len(entries) > 0 && len(entries) != all || len(entries) == 0 && all == 2000 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func put(name, content string) func(*world) error {
	return func(w *world) error { return os.WriteFile(w.path(name), []byte(content), 0o644) }
}

func mishaps() []scenario {
	main := edit("src/main.txt", "two", "2")
	return []scenario{
		{name: "killed in a script", about: "kill -9 while a program runs that has changed one file of two", steps: shell("echo x > README.md; sleep 31.4159; echo y > src/main.txt"), kill: 1, when: asleep},
		{name: "killed in a delete", about: "kill -9 while 2000 files go", prepare: manyFiles, steps: []step{{Do: "delete", Path: "many"}}, kill: 1, when: func(w *world, _ chan struct{}) { fewer(w, 2000) }},
		{name: "killed in an undo", about: "kill -9 while 2000 files come back; asked again", prepare: manyFiles, steps: []step{{Do: "delete", Path: "many"}}, undoCut: func(w *world) func() { return func() { fewer(w, 0) } }},
		{name: "killed between steps", about: "kill -9 after the second of two", steps: []step{main, write("src/new.txt", "new\n")}, between: true},
		{name: "killed in a request", about: "kill -9 when the service has made the item and not answered; with a key", steps: []step{{Do: "post", Text: "made", Key: "k-3"}}, kill: 1, when: effect},
		{name: "killed in a request, no key", about: "the same, and the service knows no keys", steps: []step{{Do: "post", Text: "made"}}, kill: 1, when: effect},
		{name: "answer lost", about: "the item is made, the connection breaks; a step that failed is tried again; with a key", steps: []step{{Do: "post", Text: "made", Key: "k-4"}}, lose: true},
		{name: "answer lost, no key", about: "the same, and the service knows no keys", steps: []step{{Do: "post", Text: "made"}}, lose: true},
		{name: "edited since", about: "somebody else rewrote the file that the agent had edited", steps: []step{main}, foreign: map[int]func(*world) error{0: put("src/main.txt", "theirs\n")}},
		{name: "edited in between", about: "somebody else rewrote it between two edits of the agent", steps: []step{main, edit("src/main.txt", "theirs", "ours")}, foreign: map[int]func(*world) error{0: put("src/main.txt", "theirs\n")}},
		{name: "another file edited", about: "somebody else rewrote a file that the agent never touched", steps: []step{main}, foreign: map[int]func(*world) error{0: put("README.md", "theirs\n")}},
		{name: "edited while it works", about: "another file, between two steps of the agent", steps: []step{main, write("src/new.txt", "new\n")}, foreign: map[int]func(*world) error{0: put("README.md", "theirs\n")}},
		{name: "file in a folder that goes", about: "somebody else put a file into a folder that the agent had made", steps: []step{{Do: "mkdir", Path: "made"}, write("made/ours.txt", "ours\n")}, foreign: map[int]func(*world) error{1: put("made/theirs.txt", "theirs\n")}},
		{name: "row changed since", about: "somebody else changed the row that the agent had changed", steps: sql1("UPDATE users SET age = 1 WHERE id = 1"), foreign: map[int]func(*world) error{0: func(w *world) error { return w.sql("UPDATE users SET age = 99 WHERE id = 1") }}},
		{name: "disk full", about: "a step does not fit; what it wrote of a file stays or goes", small: true, steps: []step{main, write("README.md", strings.Repeat("0123456789abcdef", 1<<20))}},
		{name: "two agents", about: "a second one edits another file in between", steps: []step{main, write("src/new.txt", "new\n")}, peer: map[int]step{0: edit("README.md", "Hello", "Bye")}},
		{name: "early step only", about: "of two steps on two files the first is taken back", steps: []step{main, write("README.md", "other\n")}, ask: "first"},
		{name: "undo twice", about: "the second changes nothing", steps: []step{main, {Do: "delete", Path: "src/deep"}}, ask: "twice"},
		{name: "redo", about: "what was taken back is brought back", steps: []step{main, {Do: "delete", Path: "src/deep"}}, ask: "redo"},
	}
}
