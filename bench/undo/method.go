package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// The answers of a method to an undo.
const (
	undone = "undone" // all of it
	partly = "partly" // not all of it
	cannot = "cannot"
)

// undoMethod is one method of undo in one world. A killed method is started again
// before its next request.
type undoMethod interface {
	do(s step) string                            // done, failed or unknown
	killIn(do func() string, when func()) string // do, and SIGKILL to all of its processes after when returns
	end()                                        // the agent is done
	undo() string                                // everything
	undoFirst() string                           // only the effects of the first step
	redo() string                                // what undo reverted
	close()
}

// methodFactory creates a method in a world.
type methodFactory struct {
	name, about string
	begin       func(w *testEnv, store string) (undoMethod, error)
}

func undoMethods(command string) []methodFactory {
	list := []methodFactory{{"remit", "the command: sandbox, journal, versions", func(w *testEnv, store string) (undoMethod, error) { return newRemit(command, w, store) }}}
	for _, s := range baselines() {
		list = append(list, methodFactory{s.name, s.about, func(w *testEnv, store string) (undoMethod, error) { return newBaseline(s.name, w, store) }})
	}
	return list
}

// worker is a process that answers each line with one line.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startWorker(env []string, name string, args ...string) (*worker, error) {
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Stderr = env, os.Stderr
	if os.Getenv("UNDO_BENCH_DEBUG") == "" {
		cmd.Stderr = nil
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that all of it can be killed at once
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &worker{cmd: cmd, in: in, out: bufio.NewReader(out)}, cmd.Start()
}

func (w *worker) ask(line []byte) (string, error) {
	if _, err := w.in.Write(line); err != nil {
		return "", err
	}
	answer, err := w.out.ReadString('\n')
	return strings.TrimSpace(answer), err
}

func (w *worker) kill() {
	_ = syscall.Kill(-w.cmd.Process.Pid, syscall.SIGKILL)
	_ = w.cmd.Wait()
}

func (w *worker) end() (rest string) {
	_ = w.in.Close()
	data, _ := io.ReadAll(w.out)
	_ = w.cmd.Wait()
	return string(data)
}

// remit is the remit command, with its own journal on the disk.
type remit struct {
	command string
	flags   []string // of every command
	run     *worker
	txn     string // newest transaction that ended
	first   string // call of the first step
	back    string // the revert transaction, for redo
}

const everything = `package remit

allow contains "the bench lets everything run" if true
`

// newRemit writes remit's configuration: a policy, and the compensations of the
// service's calls.
func newRemit(command string, w *testEnv, store string) (undoMethod, error) {
	at := w.service.at
	text := map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string"}}, "required": []string{"text"}, "additionalProperties": false}
	item := map[string]any{"type": "object", "properties": map[string]any{"item": map[string]any{"type": "string"}}, "required": []string{"item"}, "additionalProperties": false}
	both := map[string]any{"type": "object", "properties": map[string]any{"item": map[string]any{"type": "string"}, "text": map[string]any{"type": "string"}}, "required": []string{"item", "text"}, "additionalProperties": false}
	before := map[string]any{"method": "PUT", "before": true}
	services := map[string]any{"allow": []string{strings.TrimPrefix(at, "http://")}, "calls": []any{
		map[string]any{
			"name": "item_create", "description": "Make an item.", "method": "POST", "url": at + "/items/", "input": text, "keyed": true,
			"undo": map[string]any{"item": at + "/items/{id}", "find": at + "/items/?key={key}", "find_in": "data"},
		},
		map[string]any{
			"name": "item_make", "description": "Make an item, without a key.", "method": "POST", "url": at + "/items/", "input": text,
			"undo": map[string]any{"item": at + "/items/{id}"},
		},
		map[string]any{"name": "item_set", "description": "Set an item.", "method": "PUT", "url": at + "/items/{item}", "input": both, "undo": before},
		map[string]any{"name": "item_remove", "description": "Remove an item.", "method": "DELETE", "url": at + "/items/{item}", "input": item, "undo": before},
		map[string]any{"name": "message_send", "description": "Send a message.", "method": "POST", "url": at + "/messages", "input": text},
	}}
	data, err := json.Marshal(services)
	if err != nil {
		return nil, err
	}
	policy, file := filepath.Join(store, "policy.rego"), filepath.Join(store, "services.json")
	if err := errors.Join(os.WriteFile(policy, []byte(everything), 0o600), os.WriteFile(file, data, 0o600)); err != nil {
		return nil, err
	}
	r := &remit{command: command}
	r.flags = []string{"--workspace", w.workspace, "--state", filepath.Join(store, "state"), "--database", "main=sqlite:" + w.database, "--services", file}
	r.run, err = r.start(policy)
	return r, err
}

func (r *remit) start(policy string) (*worker, error) {
	args := append([]string{"run", "--json", "--policy", policy}, r.flags...)
	return startWorker(gitEnv(), r.command, append(args, "-")...)
}

func (r *remit) do(s step) string {
	line, err := s.line()
	if err != nil || r.run == nil {
		return failed
	}
	text, err := r.run.ask(line)
	var answer struct{ Call, Status string }
	if err != nil || json.Unmarshal([]byte(text), &answer) != nil {
		return unknown
	}
	if r.first == "" {
		r.first = answer.Call
	}
	if os.Getenv("UNDO_BENCH_DEBUG") != "" {
		fmt.Fprintln(os.Stderr, text)
	}
	switch answer.Status {
	case "done", "unknown":
		return answer.Status
	}
	return failed
}

func (r *remit) killIn(do func() string, when func()) string {
	answer := make(chan string, 1)
	go func() { answer <- do() }()
	when()
	if r.run != nil {
		r.run.kill()
		r.run = nil
	}
	return <-answer
}

func (r *remit) end() {
	if r.run != nil {
		r.run.end()
		r.run = nil
	}
}

func (r *remit) undo() string {
	r.end()
	return r.ask("revert", "--last")
}

func (r *remit) undoFirst() string {
	r.end()
	return r.ask("revert", r.first)
}

func (r *remit) redo() string { return r.ask("redo", r.back) }

// ask runs a command to its end, or until it is killed: then it is the worker.
func (r *remit) ask(verb string, args ...string) string {
	run, err := startWorker(gitEnv(), r.command, append(append([]string{verb, "--json"}, r.flags...), args...)...)
	if err != nil {
		return cannot
	}
	r.run = run
	_ = run.in.Close()
	data, _ := io.ReadAll(run.out)
	_ = run.cmd.Wait()
	if r.run == nil {
		return cannot // it was killed
	}
	r.run = nil
	var answer struct{ Txn, Undo string }
	_ = json.Unmarshal(data, &answer)
	if os.Getenv("UNDO_BENCH_DEBUG") != "" {
		fmt.Fprintln(os.Stderr, verb, args, string(data))
	}
	r.back = answer.Txn
	switch run.cmd.ProcessState.ExitCode() {
	case 0:
		return undone
	case 6:
		return partly
	}
	return cannot
}

func (r *remit) close() { r.end() }
