// Command undo reverts side effects with several methods and compares the
// results. The methods are the remit command, and baselines for common
// practice, which we wrote ourselves: a git commit per step, copies of edited
// files, a saga with its compensations in memory, and nothing. Each method gets
// the same world, the same steps and the same faults. The same oracle judges
// them, and knows none of them.
//
// "make undo-bench" runs it and writes docs/evidence/undo-bench.md,
// docs/evidence/undo-bench-effects.md and docs/evidence/undo-bench.svg.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == baselineArg {
		if err := serveBaseline(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "undo:", err)
			os.Exit(1)
		}
		return
	}
	only := flag.String("only", "", "run the side effects whose names match this pattern, and write nothing")
	docs := flag.String("docs", "", "folder for undo-bench.md, undo-bench-effects.md and undo-bench.svg; empty: print the table")
	command := flag.String("remit", "", "the remit command; empty: build it")
	verbose := flag.Bool("v", false, "say of each run what is not as it should be")
	flag.Parse()
	if err := run(*only, *docs, *command, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "undo:", err)
		os.Exit(1)
	}
}

func run(only, docs, command string, verbose bool) error {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	scratch, err := os.MkdirTemp("", "undo-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if command == "" {
		command = filepath.Join(scratch, "remit")
		build := exec.Command("go", "build", "-trimpath", "-o", command, "./cmd/remit")
		build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building remit: %w\n%s", err, out)
		}
	}
	at := where() // before: a commit may come in between
	var all []result
	for _, s := range scenarios() {
		if !chosen.MatchString(s.name) {
			continue
		}
		for _, c := range undoMethods(command) {
			r, err := try(s, c, filepath.Join(scratch, "world"))
			if err != nil {
				return fmt.Errorf("%s, %s: %w", s.name, c.name, err)
			}
			if verbose {
				fmt.Fprintf(os.Stderr, "%-34s %-8s %-7s exact=%-5v %v\n", s.name, c.name, r.claim, r.exact, r.wrong)
			}
			all = append(all, r)
		}
		if !verbose {
			fmt.Fprintf(os.Stderr, "undo: %s\n", s.name)
		}
	}
	if docs == "" || only != "" {
		fmt.Println(table(all))
		return nil
	}
	for name, text := range map[string]string{"undo-bench.md": page(at, all), "undo-bench-effects.md": effectsPage(all), "undo-bench.svg": chart(all)} {
		if err := os.WriteFile(filepath.Join(docs, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
