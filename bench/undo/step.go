package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
)

// step is one action of an agent. Every method gets the same ones.
type step struct {
	Do      string `json:"do"` // write, edit, move, delete, mkdir, shell, sql, post, put, remove, message
	Path    string `json:"path,omitempty"`
	To      string `json:"to,omitempty"`
	Content []byte `json:"content,omitempty"`
	Old     string `json:"old,omitempty"`
	New     string `json:"new,omitempty"`
	Script  string `json:"script,omitempty"` // for shell; for sql the statements
	Item    string `json:"item,omitempty"`
	Text    string `json:"text,omitempty"` // for an item
	Key     string `json:"key,omitempty"`  // idempotency key of a post
}

// The reported results of a step.
const (
	done    = "done"
	failed  = "failed"
	unknown = "unknown" // cannot be determined; only remit reports it
)

// envPaths are the parts of a world that a baseline process must know.
type envPaths struct {
	Workspace string `json:"workspace"`
	Database  string `json:"database"`
	Service   string `json:"service"`
	Store     string `json:"store"` // for its own data
	Method    string `json:"way"`
}

// act executes a step like an agent's tool. All baselines share it.
func (p envPaths) act(s step) (answer string, err error) {
	path := filepath.Join(p.Workspace, s.Path)
	switch s.Do {
	case "write":
		return "", os.WriteFile(path, s.Content, 0o644)
	case "edit":
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		info, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		return "", os.WriteFile(path, bytes.Replace(data, []byte(s.Old), []byte(s.New), 1), info.Mode())
	case "move":
		return "", os.Rename(path, filepath.Join(p.Workspace, s.To))
	case "delete":
		if _, err := os.Lstat(path); err != nil {
			return "", err
		}
		return "", os.RemoveAll(path)
	case "mkdir":
		return "", os.MkdirAll(path, 0o755)
	case "shell":
		cmd := exec.Command("sh", "-ec", s.Script)
		cmd.Dir, cmd.Env = p.Workspace, gitEnv()
		out, err := cmd.CombinedOutput()
		return string(out), err
	case "sql":
		return "", p.sql(s.Script)
	case "post":
		return p.ask(http.MethodPost, "/items/", `{"text":"`+s.Text+`"}`, s.Key)
	case "message":
		return p.ask(http.MethodPost, "/messages", `{"text":"`+s.Text+`"}`, "")
	case "put":
		return p.ask(http.MethodPut, "/items/"+s.Item, `{"text":"`+s.Text+`"}`, "")
	case "remove":
		return p.ask(http.MethodDelete, "/items/"+s.Item, "", "")
	}
	return "", fmt.Errorf("no step %q", s.Do)
}

func (p envPaths) sql(statements string, args ...any) error {
	db, err := sql.Open("sqlite", p.Database)
	if err != nil {
		return err
	}
	_, err = db.Exec(statements, args...)
	return errors.Join(err, db.Close())
}

func (p envPaths) ask(method, path, body, key string) (string, error) {
	req, err := http.NewRequest(method, p.Service+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return "", err
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = errors.New(resp.Status)
	}
	return string(data), err
}

// call returns a step as a call of remit's tools.
func (s step) call() (tool string, args map[string]any) {
	switch s.Do {
	case "write":
		return "file_write", map[string]any{"path": s.Path, "content": string(s.Content)}
	case "edit":
		return "file_edit", map[string]any{"path": s.Path, "old": s.Old, "new": s.New}
	case "move":
		return "file_move", map[string]any{"from": s.Path, "to": s.To}
	case "delete":
		return "file_delete", map[string]any{"path": s.Path, "recursive": true}
	case "mkdir":
		return "dir_create", map[string]any{"path": s.Path}
	case "shell":
		return "shell_run", map[string]any{"script": "set -e\n" + s.Script}
	case "sql":
		return "sql_execute", map[string]any{"database": "main", "sql": s.Script}
	case "post":
		if s.Key == "" {
			return "item_make", map[string]any{"text": s.Text}
		}
		return "item_create", map[string]any{"text": s.Text}
	case "put":
		return "item_set", map[string]any{"item": s.Item, "text": s.Text}
	case "remove":
		return "item_remove", map[string]any{"item": s.Item}
	default:
		return "message_send", map[string]any{"text": s.Text}
	}
}

func (s step) line() ([]byte, error) {
	tool, args := s.call()
	line, err := json.Marshal(map[string]any{"tool": tool, "args": args})
	return append(line, '\n'), err
}
