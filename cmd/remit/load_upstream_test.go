package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// troubledForTests is an MCP server that breaks down. Its first argument says how:
// steady never, crash ends in the middle of a call, hang never answers one, noisy
// writes what is no message beside its answers.
func troubledForTests() {
	how := os.Args[1]
	for lines := bufio.NewReaderSize(os.Stdin, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m troubledRequest
		if json.Unmarshal(line, &m) == nil && m.ID != nil {
			m.answer(how)
		}
	}
}

type troubledRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Version   string                      `json:"protocolVersion"`
		Name      string                      `json:"name"`
		Arguments struct{ Path, Text string } `json:"arguments"`
	} `json:"params"`
}

func (m troubledRequest) answer(how string) {
	result := any(map[string]any{})
	switch m.Method {
	case "initialize":
		result = map[string]any{"protocolVersion": m.Params.Version, "serverInfo": map[string]string{"name": how, "version": "1"}, "capabilities": map[string]any{"tools": map[string]any{}}}
	case "tools/list":
		text := map[string]any{"type": "string"}
		schema := map[string]any{"type": "object", "properties": map[string]any{"path": text, "text": text}, "required": []string{"path", "text"}}
		result = map[string]any{"tools": []any{map[string]any{"name": "read", "inputSchema": schema}, map[string]any{"name": "write", "inputSchema": schema}}}
	case "tools/call":
		result = m.call(how)
	}
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Printf("%s\n", raw)
}

// call does what it is asked to, and breaks down if the text says that it is its turn.
func (m troubledRequest) call(how string) any {
	if how == "noisy" {
		_, _ = fmt.Println("loading the model ... done")
	}
	trouble := strings.Contains(m.Params.Arguments.Text, "trouble")
	if m.Params.Name == "write" {
		if err := os.WriteFile(m.Params.Arguments.Path, []byte(m.Params.Arguments.Text), 0o600); err != nil {
			return map[string]any{"isError": true, "content": []any{map[string]string{"type": "text", "text": err.Error()}}}
		}
	}
	switch {
	case trouble && how == "crash":
		os.Exit(3)
	case trouble && how == "hang":
		time.Sleep(time.Hour)
	}
	return map[string]any{"content": []any{map[string]string{"type": "text", "text": m.Params.Arguments.Text}}}
}
