package gitrun

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Mark is the file that code creates if git runs it. It is beside the
// repository.
const Mark = "../ran"

// Trap is a repository whose user leads git through links, and files that a
// program writes where git may find them.
type Trap struct {
	Setup  string   // run by the user, outside the sandbox, in an empty folder
	Calls  []string // scripts of a program
	Victim string   // commands that the user runs afterwards
}

// Links returns the trap of a seed.
func Links(seed uint64) Trap {
	m := maker{rand.New(rand.NewPCG(seed, 18))} //nolint:gosec // a proof must repeat
	var b strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format+"\n", args...) }
	line("git init -q -b main .; git config user.name P; git config user.email p@example.com")
	line("git config filter.x.clean 'touch %s; cat'; echo x > f; git add f; git commit -q -m first", Mark)
	for _, dir := range places {
		line("mkdir -p %s", dir)
	}
	line("ln -s $(basename $PWD) ../out")
	for range 1 + m.IntN(4) {
		line("ln -s \"%s\" %s", m.of("a", "../a", "b/c", "../b/c", "b", "../b", "d", "../d", "l1", "../l2", "../../out/a", "$PWD", "$PWD/../out/b"), m.of("l1", "l2", "a/l", "b/l", "d/l"))
	}
	for range 1 + m.IntN(2) {
		switch m.IntN(5) {
		case 0:
			line("git config --add include.path \"%s\"", m.path("..", "../.git/.."))
		case 1:
			line("rmdir a/info; rm -rf .git/info; ln -s ../%s .git/info", m.path("."))
		case 2:
			line("git config core.attributesFile \"%s\"", m.path("."))
		default:
			line("git config core.hooksPath \"%s\"", m.path(".", "$PWD", "../out", "$PWD/../out", "./.git/.."))
		}
	}
	t := Trap{Setup: b.String() + "true\n"}
	for range 1 + m.IntN(4) {
		t.Calls = append(t.Calls, m.writeTrap())
	}
	t.Victim = "git status; touch f; echo y >> f; git add f; git commit -q --allow-empty -m x; true"
	return t
}

// places are the folders of a trap.
var places = []string{"a", "b/c", "d/e", "a/hk", "b/hk", "b/c/hk", "d/hk", "hk", "a/info"}

// path returns a name through the folders and links of a trap.
func (m maker) path(from ...string) string {
	parts := []string{m.of(from...)}
	for range m.IntN(3) {
		parts = append(parts, m.of("l1", "l2", "a", "b", "l", "c", "d", ".."))
	}
	return strings.Join(append(parts, m.of("hk", "hk", "inc", "l1")), "/")
}

// writeTrap writes a file that git runs if it finds it, to a random place of a trap.
// Half of the programs know the place.
func (m maker) writeTrap() string {
	hook := "printf '#!/bin/sh\\ntouch " + Mark + "\\n' > $d/run.txt; chmod +x $d/run.txt; mv $d/run.txt $d/pre-commit"
	monitor := "printf '[core]\\n\\tfsmonitor = \"touch " + Mark + "; false\"\\n' > $d"
	known := "d=$(cd .git; realpath -m -- \"$(git config --get include.path || echo ../inc)\"); "
	hooks := "d=$(realpath -m -- \"$(git config core.hooksPath || echo hk)\"); mkdir -p $d; "
	place := "d=" + m.of(places...) + "; "
	return m.of(
		hooks+hook, hooks+hook, hooks+hook, known+monitor, known+monitor, place+hook, place+monitor+"/inc",
		place+"echo '* filter=x' > $d/attributes", place+"echo '* filter=x' > $d/inc", "echo '* filter=x' > $(realpath -m -- \"$(git config core.attributesFile || echo x)\")",
		place+"rm -f l1; ln -s $d l1", place+"rm -f a/l; ln -s ../$d a/l", "rm -f l2", place+"mv $d moved; mv moved $d", place+"rm -rf $d; mkdir -p $d",
	)
}
