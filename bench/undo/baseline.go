package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// baselineArg makes this program a baseline: it reads a line for each request,
// and answers with a line. It is a separate process so that it can be killed.
const baselineArg = "stand-in"

// baseline is one method inside its process. before is called before each step,
// and after after it, also after a failed one: there the method must learn how
// to revert the step.
type baseline interface {
	before(n int, s step) error
	after(n int, s step, answer string, err error) error
	undo() string
	undoOne(n int) string
	redo() string
}

type kind struct {
	name, about string
	open        func(p envPaths) (baseline, error) // also after it was killed
}

func baselines() []kind {
	return []kind{
		{"git", "a commit per step in a repository of its own, and git reset --hard", openGit},
		{"copies", "copies of the files that edit tools name, and cp back", openCopies},
		{"saga", "a compensation per step, in memory", openSaga},
		{"nothing", "no undo", openNothing},
	}
}

type order struct {
	Step      *step `json:"step,omitempty"`
	Undo      bool  `json:"undo,omitempty"`
	UndoFirst bool  `json:"undo_first,omitempty"`
	Redo      bool  `json:"redo,omitempty"`
}

// serveBaseline is the process of a baseline.
func serveBaseline(arg string) error {
	var p envPaths
	if err := json.Unmarshal([]byte(arg), &p); err != nil {
		return err
	}
	var in baseline
	var err error
	for _, k := range baselines() {
		if k.name == p.Method {
			in, err = k.open(p)
		}
	}
	if err != nil {
		return err
	}
	lines := bufio.NewReader(os.Stdin)
	for n := countSteps(p); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		var o order
		if err := errors.Join(err, json.Unmarshal(line, &o)); err != nil {
			return err
		}
		answer := ""
		switch {
		case o.Step != nil:
			answer = one(p, in, n, *o.Step)
			n++
		case o.Undo:
			answer = in.undo()
		case o.UndoFirst:
			answer = in.undoOne(0)
		case o.Redo:
			answer = in.redo()
		}
		if _, err := os.Stdout.WriteString(answer + "\n"); err != nil {
			return err
		}
	}
}

// one executes a step. It first records that the step begins, so that no step
// number is used twice after a kill.
func one(p envPaths, in baseline, n int, s step) string {
	if err := os.WriteFile(filepath.Join(p.Store, "steps"), bytes.Repeat([]byte("x"), n+1), 0o600); err != nil {
		return failed
	}
	if err := in.before(n, s); err != nil {
		return failed
	}
	answer, err := p.act(s)
	if late := in.after(n, s, answer, err); err != nil || late != nil {
		return failed
	}
	return done
}

func countSteps(p envPaths) int {
	data, _ := os.ReadFile(filepath.Join(p.Store, "steps"))
	return len(data)
}

// baselineProcess is the client of a baseline process.
type baselineProcess struct {
	arg string
	run *worker
}

func newBaseline(name string, w *testEnv, store string) (undoMethod, error) {
	arg, err := json.Marshal(envPaths{Workspace: w.workspace, Database: w.database, Service: w.service.at, Store: store, Method: name})
	p := &baselineProcess{arg: string(arg)}
	return p, errors.Join(err, p.start())
}

func (p *baselineProcess) start() (err error) {
	self, err := os.Executable()
	if err == nil {
		p.run, err = startWorker(gitEnv(), self, baselineArg, p.arg)
	}
	return err
}

func (p *baselineProcess) ask(o order) string {
	if p.run == nil {
		if err := p.start(); err != nil {
			return cannot
		}
	}
	line, err := json.Marshal(o)
	if err != nil {
		return cannot
	}
	answer, err := p.run.ask(append(line, '\n'))
	if err != nil {
		return cannot
	}
	return answer
}

func (p *baselineProcess) do(s step) string { return p.ask(order{Step: &s}) }

func (p *baselineProcess) killIn(do func() string, when func()) string {
	run := p.run
	answer := make(chan string, 1)
	go func() { answer <- do() }()
	when()
	run.kill()
	said := <-answer
	p.run = nil
	return said
}

// end does nothing: compensations in memory live as long as the process.
func (p *baselineProcess) end() {}

func (p *baselineProcess) undo() string      { return p.ask(order{Undo: true}) }
func (p *baselineProcess) undoFirst() string { return p.ask(order{UndoFirst: true}) }
func (p *baselineProcess) redo() string      { return p.ask(order{Redo: true}) }

func (p *baselineProcess) close() {
	if p.run != nil {
		p.run.end()
	}
}
