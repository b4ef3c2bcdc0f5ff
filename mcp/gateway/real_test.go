package gateway_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/mcp/gateway"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// realServers is the folder in which .ci/mcp-servers has installed the protocol's own servers.
func realServers(t *testing.T) (node, modules string) {
	dir := os.Getenv("REMIT_MCP_SERVERS")
	if dir == "" {
		t.Skip("needs servers from npm: .ci/mcp-servers installs them, and runs this")
	}
	node, err := exec.LookPath("node")
	require.NoError(t, err, "the servers are programs of Node.js")
	modules = filepath.Join(dir, "node_modules")
	require.DirExists(t, modules)
	return node, modules
}

// lines speaks to a server in the revision 2025-11-25, and keeps what comes as it came.
type lines struct {
	t   testing.TB
	in  io.Writer
	out *bufio.Reader
	id  int
}

func (l *lines) begin() *lines {
	l.request("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "remit", "version": ""}})
	_, err := fmt.Fprintln(l.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	require.NoError(l.t, err)
	return l
}

type reply struct{ Result, Error json.RawMessage }

func (l *lines) request(method string, params any) reply {
	l.t.Helper()
	l.id++
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": l.id, "method": method, "params": params})
	require.NoError(l.t, err)
	_, err = l.in.Write(append(raw, '\n'))
	require.NoError(l.t, err)
	for {
		line, err := l.out.ReadBytes('\n')
		require.NoError(l.t, err, "%s", method)
		var m struct {
			ID            any
			Result, Error json.RawMessage
		}
		require.NoError(l.t, json.Unmarshal(line, &m))
		if m.ID == float64(l.id) {
			return reply{m.Result, m.Error}
		}
	}
}

func (l *lines) call(name string, args any) reply {
	l.t.Helper()
	return l.request("tools/call", map[string]any{"name": name, "arguments": args})
}

// members of a reply, without what remit adds to it.
func (r reply) members(t *testing.T) map[string]string {
	t.Helper()
	require.Nil(t, r.Error, string(r.Error))
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(r.Result, &all))
	out := map[string]string{}
	for name, raw := range all {
		if name == "_meta" {
			var meta map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(raw, &meta))
			maps.DeleteFunc(meta, func(key string, _ json.RawMessage) bool { return strings.HasPrefix(key, "remit.dev/") })
			if len(meta) == 0 {
				continue
			}
			var err error
			raw, err = json.Marshal(meta)
			require.NoError(t, err)
		}
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, raw))
		var plain bytes.Buffer
		json.HTMLEscape(&plain, compact.Bytes()) // as Go writes it; it is the same text
		out[name] = plain.String()
	}
	return out
}

// direct starts a server and speaks to it with nobody in between.
func direct(t *testing.T, entry string) *lines {
	t.Helper()
	var e struct {
		Command string
		Args    []string
		Env     map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(entry), &e))
	cmd := exec.Command(e.Command, e.Args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	for name, value := range e.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return (&lines{t: t, in: in, out: bufio.NewReaderSize(out, 1<<20)}).begin()
}

// through speaks to the servers of a house through remit.
func (h *gatewaySetup) through() *lines {
	h.t.Helper()
	srv, err := mcp.New(h.rt, mcp.Options{Mirror: h.gateway})
	require.NoError(h.t, err)
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	s := h.session()
	done := make(chan error, 1)
	go func() { done <- srv.Run(h.t.Context(), &sdk.IOTransport{Reader: theirs, Writer: ours}, s) }()
	h.t.Cleanup(func() {
		_ = in.Close()
		_ = out.Close()
		<-done //nolint:errcheck // it says that the client left
	})
	return (&lines{t: h.t, in: in, out: bufio.NewReaderSize(out, 1<<20)}).begin()
}

// toolsOf lists the tools of a server as it wrote them, by name.
func (l *lines) toolsOf() map[string]json.RawMessage {
	l.t.Helper()
	var list struct{ Tools []json.RawMessage }
	require.NoError(l.t, json.Unmarshal(l.request("tools/list", map[string]any{}).Result, &list))
	out := map[string]json.RawMessage{}
	for _, raw := range list.Tools {
		var named struct{ Name string }
		require.NoError(l.t, json.Unmarshal(raw, &named))
		out[named.Name] = raw
	}
	return out
}

type request struct {
	tool string
	args map[string]any
}

// TestRealServersAreAsTheyWere: what the protocol's own servers list and answer, errors too, is the same through remit, byte by
// byte apart from names.
func TestRealServersAreAsTheyWere(t *testing.T) {
	node, modules := realServers(t)
	for _, tt := range []struct {
		server string
		args   func(dir string) []string
		env    map[string]string
		calls  func(dir string) []request
		tools  int
	}{
		{"filesystem", func(dir string) []string { return []string{dir} }, nil, filesystemCalls, 14},
		{"memory", func(string) []string { return nil }, map[string]string{"MEMORY_FILE_PATH": "DIR/memory.jsonl"}, memoryCalls, 9},
		{"everything", func(string) []string { return nil }, nil, everythingCalls, 0},
	} {
		for _, way := range []string{"plain", "boxed"} {
			t.Run(tt.server+"/"+way, func(t *testing.T) {
				h := newGatewaySetup(t)
				reset := func() {
					found, err := filepath.Glob(filepath.Join(h.dir, "*"))
					require.NoError(t, err)
					for _, f := range found {
						require.NoError(t, os.RemoveAll(f))
					}
					h.put("a.txt", "alpha\nbeta\n")
					require.NoError(t, os.Mkdir(filepath.Join(h.dir, "sub"), 0o755))
					h.put("sub/b.txt", "<b> & \u2028 ünï\n")
					h.put("memory.jsonl", `{"type":"entity","name":"x","entityType":"t","observations":["o"]}`)
				}
				entry := h.node(node, modules, tt.server, tt.args(h.dir), tt.env)
				reset()
				plain := direct(t, entry)
				lists := plain.toolsOf()
				if tt.tools > 0 {
					require.Len(t, lists, tt.tools)
				}
				var before []reply
				for _, r := range tt.calls(h.dir) {
					before = append(before, plain.call(r.tool, r.args))
				}
				reset()
				known := `{"s": {"tools": ` + drafted(t, lists) + `}}`
				if way == "boxed" {
					known = `{"s": {"sandbox": {"roots": ["workspace"], "readable": [` + fmt.Sprintf("%q", filepath.Dir(modules)) + `]}, "tools": {}}}`
				}
				h.open(map[string]string{"s": entry}, known, func(o *gateway.Options) { o.SkipInputValidation = true })
				there := h.through()
				mirrored := there.toolsOf()
				for name, raw := range lists {
					want := strings.Replace(string(raw), fmt.Sprintf(`"name":%q`, name), fmt.Sprintf(`"name":%q`, "s__"+name), 1)
					got, ok := mirrored["s__"+name]
					require.True(t, ok, "%s of %v", name, slices.Sorted(maps.Keys(mirrored)))
					var escaped bytes.Buffer
					json.HTMLEscape(&escaped, []byte(want))
					require.Equal(t, escaped.String(), string(got))
				}
				for i, r := range tt.calls(h.dir) {
					got := there.call("s__"+r.tool, r.args)
					if before[i].Error != nil {
						require.NotNil(t, got.Error, "%s %v: %s", r.tool, r.args, got.Result)
						require.Equal(t, compacted(t, before[i].Error), compacted(t, got.Error), "%s %v", r.tool, r.args)
						continue
					}
					require.Equal(t, undated(before[i].members(t)), undated(got.members(t)), "%s %v", r.tool, r.args)
				}
			})
		}
	}
}

// TestRealServersAsk: what the protocol's own server asks of its client reaches whoever made the call, in both ways to ask.
func TestRealServersAsk(t *testing.T) {
	node, modules := realServers(t)
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.node(node, modules, "everything", nil, nil)}, `{"s": {"roots": ["workspace"], "asks": ["elicitation", "sampling"], "tools": {
		"trigger-elicitation-request": {"effectClass": "pivot"}, "trigger-sampling-request": {"effectClass": "pivot"}, "get-roots-list": {"effectClass": "pivot"}}}}`)
	for _, revision := range []string{modern, legacy} {
		var heard []string
		cs := h.client(h.serve(), revision, "Ann", func(text string) { heard = append(heard, text) })
		for _, name := range []string{"trigger-elicitation-request", "trigger-sampling-request", "get-roots-list"} {
			r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "s__" + name, Arguments: map[string]any{"prompt": "say"}})
			require.NoError(t, err, name)
			raw, err := json.Marshal(r.Content)
			require.NoError(t, err)
			require.False(t, r.IsError, "%s: %s", name, raw)
			want := "Ann"
			if name == "get-roots-list" {
				want = h.dir
			}
			require.Contains(t, string(raw), want)
		}
		require.Len(t, heard, 2)
		require.Contains(t, heard[0], "Server s asks: ")
	}
}

// undated takes out what is another one at each call: times, and what is drawn by lot.
func undated(members map[string]string) map[string]string {
	for name, text := range members {
		if strings.Contains(text, "created") || strings.Contains(text, "PATH") {
			members[name] = "(another one each time)"
		}
	}
	return members
}

// node is an entry of a server from npm.
func (h *gatewaySetup) node(node, modules, name string, args []string, env map[string]string) string {
	h.t.Helper()
	main := filepath.Join(modules, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	require.FileExists(h.t, main)
	all := map[string]string{}
	for key, value := range env {
		all[key] = strings.ReplaceAll(value, "DIR", h.dir)
	}
	raw, err := json.Marshal(map[string]any{"command": node, "args": append([]string{main}, args...), "env": all})
	require.NoError(h.t, err)
	return string(raw)
}

// drafted says of each tool that it may run: this is about what comes back.
func drafted(t *testing.T, lists map[string]json.RawMessage) string {
	t.Helper()
	all := map[string]any{}
	for name := range lists {
		all[name] = map[string]any{"effectClass": "pivot"}
	}
	raw, err := json.Marshal(all)
	require.NoError(t, err)
	return string(raw)
}

func filesystemCalls(dir string) []request {
	at := func(name string) string { return filepath.Join(dir, name) }
	return []request{
		{"list_allowed_directories", map[string]any{}},
		{"read_text_file", map[string]any{"path": at("a.txt")}},
		{"read_text_file", map[string]any{"path": at("a.txt"), "head": 1}},
		{"read_text_file", map[string]any{"path": at("sub/b.txt")}},
		{"read_text_file", map[string]any{"path": at("none.txt")}},
		{"read_text_file", map[string]any{"path": "/etc/passwd"}},
		{"read_text_file", map[string]any{"path": 7}},
		{"read_text_file", map[string]any{}},
		{"read_media_file", map[string]any{"path": at("a.txt")}},
		{"read_multiple_files", map[string]any{"paths": []string{at("a.txt"), at("none.txt")}}},
		{"write_file", map[string]any{"path": at("new.txt"), "content": "x\n"}},
		{"write_file", map[string]any{"path": "/etc/nothing", "content": "x\n"}},
		{"edit_file", map[string]any{"path": at("a.txt"), "edits": []any{map[string]any{"oldText": "alpha", "newText": "ALPHA"}}}},
		{"edit_file", map[string]any{"path": at("a.txt"), "edits": []any{map[string]any{"oldText": "nowhere", "newText": "x"}}}},
		{"create_directory", map[string]any{"path": at("made")}},
		{"list_directory", map[string]any{"path": at(".")}},
		{"list_directory_with_sizes", map[string]any{"path": at("sub")}},
		{"directory_tree", map[string]any{"path": at(".")}},
		{"move_file", map[string]any{"source": at("new.txt"), "destination": at("made/moved.txt")}},
		{"search_files", map[string]any{"path": at("."), "pattern": "**/*.txt"}},
		{"get_file_info", map[string]any{"path": at("a.txt")}},
	}
}

func memoryCalls(string) []request {
	return []request{
		{"read_graph", map[string]any{}},
		{"create_entities", map[string]any{"entities": []any{map[string]any{"name": "y", "entityType": "t", "observations": []string{"<&>"}}}}},
		{"create_entities", map[string]any{"entities": "none"}},
		{"create_relations", map[string]any{"relations": []any{map[string]any{"from": "x", "to": "y", "relationType": "knows"}}}},
		{"add_observations", map[string]any{"observations": []any{map[string]any{"entityName": "y", "contents": []string{"more"}}}}},
		{"add_observations", map[string]any{"observations": []any{map[string]any{"entityName": "nobody", "contents": []string{"more"}}}}},
		{"search_nodes", map[string]any{"query": "more"}},
		{"open_nodes", map[string]any{"names": []string{"x", "y"}}},
		{"delete_observations", map[string]any{"deletions": []any{map[string]any{"entityName": "y", "observations": []string{"more"}}}}},
		{"delete_relations", map[string]any{"relations": []any{map[string]any{"from": "x", "to": "y", "relationType": "knows"}}}},
		{"delete_entities", map[string]any{"entityNames": []string{"y"}}},
		{"read_graph", map[string]any{}},
	}
}

func everythingCalls(string) []request {
	return []request{
		{"echo", map[string]any{"message": "hi <&> \u2028"}},
		{"echo", map[string]any{}},
		{"get-sum", map[string]any{"a": 1, "b": 2.5}},
		{"get-sum", map[string]any{"a": "x", "b": 2}},
		{"get-tiny-image", map[string]any{}},
		{"get-annotated-message", map[string]any{"messageType": "error", "includeImage": true}},
		{"get-structured-content", map[string]any{"location": "New York"}},
		{"get-resource-links", map[string]any{"count": 2}},
		{"get-resource-reference", map[string]any{"resourceType": "Text", "resourceId": 1}},
		{"trigger-long-running-operation", map[string]any{"duration": 0.2, "steps": 2}},
	}
}

// tree is a folder as it is, byte by byte.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			out[path] = "dir"
			return err
		}
		raw, err := os.ReadFile(path)
		info, _ := d.Info()
		out[path] = fmt.Sprintf("%s %d %s", info.Mode(), info.ModTime().UnixNano(), canon.SumBytes(raw))
		return err
	}))
	return out
}

// TestRealServersAreUndone: one transaction over files that server-filesystem writes and entities that server-memory makes is taken
// back, and the folder and the memory are byte by byte as before: by what the entries say, and by the sandbox without any.
func TestRealServersAreUndone(t *testing.T) {
	node, modules := realServers(t)
	box := `{"sandbox": {"roots": ["workspace"], "readable": [` + fmt.Sprintf("%q", filepath.Dir(modules)) + `]}}`
	for way, known := range map[string]string{
		"mapping": `{"files": {"tools": {
			"write_file": {"effectClass": "reversible", "errors": "no_effect", "undo": {"snapshot": ["file://workspace/{path}"]}},
			"edit_file": {"effectClass": "reversible", "errors": "no_effect", "undo": {"snapshot": ["file://workspace/{path}"]}},
			"move_file": {"errors": "no_effect", "undo": {"compensate": {"tool": "move_file", "args": {"source": {"$from": "/input/destination"}, "destination": {"$from": "/input/source"}}}}}}},
		"memory": {"tools": {
			"create_entities": {"undo": {"compensate": {"tool": "delete_entities", "args": {"entityNames": {"$from": "/output/structuredContent/entities/*/name"}}}, "repeatable": true}},
			"create_relations": {"undo": {"compensate": {"tool": "delete_relations", "args": {"relations": {"$from": "/output/structuredContent/relations"}}}, "repeatable": true}},
			"add_observations": {"undo": {"compensate": {"tool": "delete_observations", "args": {"deletions": {"$each": "/output/structuredContent/results",
				"as": {"entityName": {"$from": "/item/entityName"}, "observations": {"$from": "/item/addedObservations"}}}}}, "repeatable": true}}}}}`,
		"sandbox": `{"files": ` + box + `, "memory": ` + box + `}`,
	} {
		t.Run(way, func(t *testing.T) {
			h := newGatewaySetup(t)
			h.put("a.txt", "alpha\n")
			h.put("old.txt", "old\n")
			h.put("memory.jsonl", `{"type":"entity","name":"x","entityType":"t","observations":["o"]}`)
			before := tree(t, h.dir)
			h.open(map[string]string{
				"files":  h.node(node, modules, "filesystem", []string{h.dir}, nil),
				"memory": h.node(node, modules, "memory", nil, map[string]string{"MEMORY_FILE_PATH": "DIR/memory.jsonl"}),
			}, known)
			at := func(name string) string { return filepath.Join(h.dir, name) }
			s := h.session()
			id, err := s.Update(t.Context(), func(tx *agent.Txn) error {
				for _, c := range []agent.BatchCall{
					{Tool: "files__write_file", Input: tool.Args{"path": at("new.txt"), "content": "new"}},
					{Tool: "memory__create_entities", Input: tool.Args{"entities": []any{map[string]any{"name": "y", "entityType": "t", "observations": []any{}}}}},
					{Tool: "file_write", Input: tool.Args{"path": "own.txt", "content": "own"}},
					{Tool: "files__edit_file", Input: tool.Args{"path": at("a.txt"), "edits": []any{map[string]any{"oldText": "alpha", "newText": "ALPHA"}}}},
					{Tool: "memory__create_relations", Input: tool.Args{"relations": []any{map[string]any{"from": "x", "to": "y", "relationType": "knows"}}}},
					{Tool: "memory__add_observations", Input: tool.Args{"observations": []any{map[string]any{"entityName": "x", "contents": []any{"p", "q"}}}}},
					{Tool: "files__move_file", Input: tool.Args{"source": at("old.txt"), "destination": at("moved.txt")}},
				} {
					out, err := tx.Invoke(t.Context(), c.Tool, c.Input)
					if err != nil {
						return fmt.Errorf("%s: %s: %w", c.Tool, out.Text, err)
					}
				}
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, "ALPHA\n", h.get("a.txt"))
			require.Contains(t, h.get("memory.jsonl"), "knows")
			require.Equal(t, "old\n", h.get("moved.txt"))
			rep, err := s.Revert(t.Context(), id, revert.Options{})
			require.NoError(t, err, "%v", rep.NotReverted())
			after := tree(t, h.dir)
			if way == "mapping" { // the server wrote the file anew
				for _, all := range []map[string]string{before, after} {
					fields := strings.Fields(all[at("memory.jsonl")])
					all[at("memory.jsonl")] = fields[0] + fields[2]
				}
			}
			require.Equal(t, before, after)
		})
	}
}
