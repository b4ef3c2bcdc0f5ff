package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// names replaces what is random by numbers, and keeps them over the runs of one
// script. The calls of a wave tell of themselves at once, so its writers take turns.
type names struct {
	file, work string
	mu         sync.Mutex        // of one writer, from what it is given to what it has saved
	short      map[string]string // id -> name
	counts     map[string]int
}

func loadNames(work string) *names {
	n := &names{file: filepath.Join(work, ".names"), work: work, short: map[string]string{}, counts: map[string]int{}}
	data, err := os.ReadFile(n.file)
	if errors.Is(err, os.ErrNotExist) {
		return n
	}
	if err == nil {
		err = json.Unmarshal(data, &n.short)
	}
	if err != nil {
		panic(err)
	}
	for _, s := range n.short {
		n.counts[s[:strings.LastIndexAny(s, "_:")+1]]++
	}
	return n
}

func (n *names) save() error {
	data, err := json.Marshal(n.short)
	if err != nil {
		return err
	}
	return os.WriteFile(n.file, data, 0o600)
}

// real turns names in an argument back into ids. A name with "~" behind it is the
// id without its last character.
func (n *names) real(arg string) string {
	if name, short := strings.CutSuffix(arg, "~"); short {
		if id := n.real(name); id != name {
			return id[:len(id)-1]
		}
	}
	for id, s := range n.short {
		if s == arg {
			return id
		}
		if size, ok := strings.CutSuffix(arg, ":"+s); ok && strings.HasPrefix(s, "sha256:") { // a tree head
			return size + ":" + id
		}
	}
	return arg
}

func (n *names) name(kind, id string) string {
	if s, ok := n.short[id]; ok {
		return s
	}
	n.counts[kind]++
	n.short[id] = fmt.Sprintf("%s%d", kind, n.counts[kind])
	return n.short[id]
}

func (n *names) normal(text string) string {
	text = strings.ReplaceAll(text, n.work, "WORK")
	text = regexp.MustCompile(`\b[tcsg]_[0-9a-z]{12}\b`).ReplaceAllStringFunc(text, func(id string) string { return n.name(id[:2], id) })
	text = regexp.MustCompile(`\bsha256:[0-9a-f]{64}\b`).ReplaceAllStringFunc(text, func(d string) string { return n.name("sha256:", d) })
	text = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`).ReplaceAllString(text, "TIME")
	return text
}

// writer writes whole lines, normalised, as soon as they are there.
func (n *names) writer(w io.Writer) *lineWriter { return &lineWriter{names: n, w: w} }

type lineWriter struct {
	names *names
	w     io.Writer
	buf   bytes.Buffer
}

// Write takes p and passes on the lines that are whole.
func (l *lineWriter) Write(p []byte) (int, error) {
	l.names.mu.Lock()
	defer l.names.mu.Unlock()
	l.buf.Write(p)
	at := bytes.LastIndexByte(l.buf.Bytes(), '\n')
	if at < 0 {
		return len(p), nil
	}
	return len(p), l.pass(at + 1)
}

func (l *lineWriter) pass(n int) error {
	_, err := io.WriteString(l.w, l.names.normal(string(l.buf.Next(n))))
	return errors.Join(err, l.names.save())
}

func (l *lineWriter) flush() error {
	l.names.mu.Lock()
	defer l.names.mu.Unlock()
	return l.pass(l.buf.Len())
}
