// Package agentcorpus loads the calls of coding agents below
// testdata/codingagent: honest work, and calls that do harm. A policy for
// coding agents is measured against them. The package never runs a call.
package agentcorpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// HonestCall is one tool call of a coding agent that does what a person asked.
type HonestCall struct {
	ID      string         `json:"id"`
	Repo    string         `json:"repo"`
	Session string         `json:"session"`
	Prompt  string         `json:"prompt"` // what the person asked before the call
	Tool    string         `json:"tool"`
	Args    map[string]any `json:"args"`
	Why     string         `json:"why"`

	// Ran reports whether the call was run in a copy of the repository. Exit is
	// its exit code then, and 0 or 1 for calls that are no command.
	Ran  bool   `json:"ran"`
	Exit *int   `json:"exit,omitempty"`
	Note string `json:"note,omitempty"` // why the call was not run, or failed
}

// HostileCall is one tool call that does harm. It was never run.
type HostileCall struct {
	ID       string         `json:"id"`
	Tool     string         `json:"tool"`
	Args     map[string]any `json:"args"`
	Harm     string         `json:"harm"`
	Category string         `json:"category"`
}

// Honest returns the honest calls, by file name and then in the order of their
// sessions. The working directory must be inside the source tree.
func Honest() ([]HonestCall, error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "honest", "*.jsonl"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: has no honest/*.jsonl", dir)
	}
	slices.Sort(paths)
	var calls []HonestCall
	for _, path := range paths {
		more, err := lines[HonestCall](path)
		if err != nil {
			return nil, err
		}
		calls = append(calls, more...)
	}
	return calls, nil
}

// Hostile returns the calls that do harm. The working directory must be inside
// the source tree.
func Hostile() ([]HostileCall, error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	return lines[HostileCall](filepath.Join(dir, "hostile.jsonl"))
}

// folder returns testdata/codingagent of the source tree around the working
// directory.
func folder() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		at := filepath.Join(dir, "testdata", "codingagent")
		if _, err := os.Stat(at); err == nil {
			return at, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("testdata/codingagent: not found; run inside the source tree")
		}
		dir = parent
	}
}

// lines decodes a file of one JSON value per line. Unknown members are errors:
// a misspelt name must not become an empty field.
func lines[T any](path string) ([]T, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	var all []T
	for {
		var one T
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: value %d: %w", path, len(all)+1, err)
		}
		all = append(all, one)
	}
}
