package guides_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/pgtest"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

func shell(t *testing.T) {
	t.Helper()
	for _, name := range []string{"sh", "go"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("there is no ", name)
		}
	}
}

// TestReadmeQuickStart checks that README.md shows sections of the output of
// its quick-start script. The digests are those of the machine that wrote them.
func TestReadmeQuickStart(t *testing.T) {
	shell(t)
	shown := take(t, "README.md", "console", 0)
	command, shown, _ := strings.Cut(shown, "\n")
	require.Equal(t, "$ make run", command)
	cmd := exec.Command("sh", filepath.Join(root, "examples", "quickstart", "demo.sh"), filepath.Join(binary(t), "remit"))
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "COLUMNS=200")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	digests := regexp.MustCompile(`[0-9a-f]{16}|\b[ct]_[0-9a-z]{12}`)
	whole := digests.ReplaceAllString(string(out), "DIGEST")
	for _, section := range strings.Split(digests.ReplaceAllString(shown, "DIGEST"), "\n\n") {
		require.Contains(t, whole, strings.TrimSpace(section))
	}
}

func TestFirstTool(t *testing.T) {
	shell(t)
	cmd := exec.Command("go", "run", "./examples/first")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	call := regexp.MustCompile(`call c_[a-z0-9]+`)
	require.Equal(t, take(t, "tutorial/first-tool.md", "text", 0), call.ReplaceAllString(string(out), "call c_…"))
}

// synopsis checks that the command has each verb and each flag of a synopsis.
func synopsis(t *testing.T, text string) {
	t.Helper()
	dir, lines := binary(t), 0
	flag := regexp.MustCompile(`--[a-z][a-z-]*`)
	verb := regexp.MustCompile(`^[a-z][a-z-]*$`)
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		usage, _, _ := strings.Cut(line, "   ")
		words := strings.Fields(usage)
		require.Equal(t, "remit", words[0], line)
		var verbs []string // of the first command; others of the line follow a bar
		for _, w := range words[1:] {
			if !verb.MatchString(w) {
				break
			}
			verbs = append(verbs, w)
		}
		alternatives := [][]string{verbs}
		for i, w := range words {
			if w == "|" && verb.MatchString(words[i-1]) && i+1 < len(words) && verb.MatchString(words[i+1]) {
				alternatives = append(alternatives, append(append([]string{}, verbs[:len(verbs)-1]...), words[i+1]))
			}
		}
		for _, v := range alternatives {
			help, err := exec.Command(filepath.Join(dir, "remit"), append(v, "--help")...).CombinedOutput()
			require.NoError(t, err, "%s: %s", line, help)
			require.Contains(t, string(help), "remit "+strings.Join(v, " "), line)
			if len(alternatives) == 1 {
				for _, f := range flag.FindAllString(line, -1) {
					require.Regexp(t, f+`\b`, string(help), line)
				}
			}
		}
		lines++
	}
	require.Positive(t, lines)
}

func TestSynopses(t *testing.T) {
	shell(t)
	for n := range 8 {
		synopsis(t, take(t, "reference/cli.md", "text", n))
	}
	for n := range 3 {
		synopsis(t, take(t, "guides/feedback.md", "text", n))
	}
	synopsis(t, take(t, "guides/gateway.md", "text", 0))
	synopsis(t, take(t, "guides/gateway.md", "text", 1))
}

func TestReadmeGo(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, writeAndRevert(t.Context(), dir))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func writeAndRevert(ctx context.Context, dir string) error {
	// guide: README.md
	rt, err := agent.New(agent.Tools(builtin.Files()...), agent.Root("workspace", dir))
	if err != nil {
		return err
	}
	defer rt.Close()
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		return err
	}
	txn, err := s.Update(ctx, func(tx *agent.Txn) error { // commits on nil, reverts on error or panic
		_, err := tx.Invoke(ctx, "file_write", tool.Args{"path": "a.txt", "content": "hi"})
		return err
	})
	if err != nil {
		return err
	}
	report, err := s.Revert(ctx, txn, revert.Options{}) // also after commit
	if err == nil {
		fmt.Println(report.State) // reverted
	}
	return err
	// end of guide
}

func TestReadmeRules(t *testing.T) {
	engine := open(t, take(t, "README.md", "rego", 0)+`allow contains "the tools" if input.access.resource.kind == "tool"`)
	rt, _ := runtime(t, agent.Tools(builtin.Files()...), agent.Policy(engine))
	s := session(t, rt)
	_, err := call(t, s, "file_write", map[string]any{"path": "a.txt", "content": "hi"})
	require.NoError(t, err)
	_, err = call(t, s, "file_write", map[string]any{"path": ".git/config", "content": "hi"})
	require.ErrorIs(t, err, tool.ErrDenied)
}

func TestHTTPRules(t *testing.T) {
	engine := open(t, take(t, "guides/http.md", "rego", 0))
	for members, want := range map[string]perm.Effect{
		`"method":"GET","resource":{"kind":"https","host":"api.example.com"`:  perm.Allow,
		`"method":"POST","resource":{"kind":"https","host":"api.example.com"`: perm.Deny,
		`"method":"GET","resource":{"kind":"https","host":"example.com"`:      perm.Deny,
	} {
		var request perm.Request
		doc := document(t, `{"access":{"action":"connect",`+members+`,"text":"x","root":null,"path":"/v1/items","segments":null,"name":null,"ext":null,"scheme":"https","port":443}}}`)
		require.NoError(t, json.Unmarshal([]byte(doc), &request))
		decided, err := engine.Decide(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, want, decided.Effect(), members)
	}
}

func TestSecretRules(t *testing.T) {
	engine := open(t, take(t, "guides/secrets.md", "rego", 0))
	for name, want := range map[string]perm.Effect{"shop": perm.Allow, "other": perm.Deny} {
		var request perm.Request
		doc := document(t, `{"access":{"action":"use","resource":{"kind":"secret","text":"secret://`+name+`","root":null,"path":null,"segments":null,"name":"`+name+`","ext":null}}}`)
		require.NoError(t, json.Unmarshal([]byte(doc), &request))
		decided, err := engine.Decide(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, want, decided.Effect(), name)
	}
}

// TestDatabase runs two calls under the policy of the guide to databases, and
// reverts them.
func TestDatabase(t *testing.T) {
	shell(t)
	p := newPlace(t)
	db, err := sql.Open("sqlite", filepath.Join(p.dir, "app.db"))
	require.NoError(t, err)
	_, err = db.Exec("CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO users VALUES (1, 'ann')")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	p.write("script.jsonl", take(t, "guides/database.md", "jsonl", 0))
	p.write("users.rego", take(t, "guides/database.md", "rego", 0))
	out := p.sh(0, take(t, "guides/database.md", "sh", 0))
	require.Contains(t, out, "sql_execute")
	p.sh(0, "remit revert --last --database main=sqlite:app.db")
}

// TestRoleOfADatabase uses the role of the guide on a PostgreSQL server: rows
// change and are reverted, and no call exceeds the rights of the role.
func TestRoleOfADatabase(t *testing.T) {
	text := take(t, "guides/database.md", "sql", 0)
	shell(t)
	owner, _ := pgtest.Database(t)
	pgtest.Exec(t, owner, "CREATE TABLE orders(id int PRIMARY KEY, state text); INSERT INTO orders VALUES (1, 'new'); CREATE TABLE prices(id int PRIMARY KEY)")
	pgtest.Exec(t, owner, text)
	t.Cleanup(func() { pgtest.Exec(t, owner, "DROP OWNED BY shop_agent; DROP ROLE shop_agent") }) // roles belong to the whole server
	at := strings.Replace(owner, "postgres@", "shop_agent@", 1)
	require.NotEqual(t, owner, at)
	p := newPlace(t)
	p.write("all.rego", "package remit\n\nallow contains \"all\" if true\n")
	p.write("script.jsonl", `{"tool":"sql_execute","args":{"database":"main","sql":"UPDATE orders SET state = 'sent' WHERE id = 1"}}`+"\n")
	p.sh(0, "remit run --policy all.rego --database 'main="+at+"' script.jsonl")
	require.Equal(t, "1|sent\n", pgtest.Rows(t, owner, "SELECT * FROM orders"))
	p.sh(0, "remit revert --last --database 'main="+at+"'")
	require.Equal(t, "1|new\n", pgtest.Rows(t, owner, "SELECT * FROM orders"))
	p.write("script.jsonl", `{"tool":"sql_execute","args":{"database":"main","sql":"INSERT INTO prices VALUES (1)"}}`+"\n")
	out := p.sh(5, "remit run --policy all.rego --database 'main="+at+"' script.jsonl")
	require.Contains(t, out, "prices")
}

// TestDefineNarrower uses a definition that narrows a built-in tool, and one
// that the command prints.
func TestDefineNarrower(t *testing.T) {
	shell(t)
	p := newPlace(t)
	out := p.sh(0, take(t, "guides/define.md", "sh", 0))
	require.Contains(t, out, "file_write.json, for builtin/file_write")
	p.write("tools/docs.json", take(t, "guides/define.md", "json", 1))
	p.write("w/docs/old.md", "")
	p.write("script.jsonl", `{"tool":"docs_write","args":{"path":"docs/a.md","content":"hi"}}`+"\n"+`{"tool":"docs_write","args":{"path":"a.md","content":"hi"}}`+"\n")
	out = p.sh(5, "remit run --workspace w --definitions tools script.jsonl")
	require.Contains(t, out, "lies outside what the tool declares to need")
}

// TestProgram runs programs, from a script and from Go.
func TestProgram(t *testing.T) {
	shell(t)
	for _, name := range []string{"make", "git", "sed"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("there is no ", name)
		}
	}
	p := newPlace(t)
	p.write("repo/src/Makefile", "test:\n\t@echo tested\n")
	p.write("repo/a.go", "package old\n")
	p.write("script.jsonl", take(t, "guides/program.md", "jsonl", 0))
	p.sh(0, "cd repo && git init -q && git config user.name Ann && git config user.email ann@example.com && git add -A && git commit -qm old")
	before := p.sh(0, "cd repo && git rev-parse HEAD")
	out := p.sh(0, "remit run --workspace repo script.jsonl")
	require.Contains(t, out, "tested")
	require.Equal(t, "package new\n", p.content("repo/a.go"))
	require.NotEqual(t, before, p.sh(0, "cd repo && git rev-parse HEAD"))
	p.sh(0, "remit revert --workspace repo --last")
	require.Equal(t, before, p.sh(0, "cd repo && git rev-parse HEAD"))
}

// TestProgramNetwork checks the rules for hosts of programs, and that a program
// without an approver reaches no host that they ask about.
func TestProgramNetwork(t *testing.T) {
	shell(t)
	rules := take(t, "guides/program.md", "rego", 0)
	engine := open(t, rules)
	for host, want := range map[string]perm.Effect{"repo1.maven.org": perm.Allow, "example.com": perm.Ask} {
		var request perm.Request
		doc := document(t, `{"tool":{"confinement":"sandbox"},"access":{"action":"connect","method":"CONNECT","resource":{"kind":"https","host":"`+host+`","text":"x","root":null,"path":"","segments":null,"name":null,"ext":null,"scheme":"https","port":443}}}`)
		require.NoError(t, json.Unmarshal([]byte(doc), &request))
		decided, err := engine.Decide(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, want, decided.Effect(), host)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	p := newPlace(t)
	p.write("w/a.txt", "")
	p.write("network.rego", rules)
	p.write("script.jsonl", `{"tool":"shell_run","args":{"script":"curl -sS http://elsewhere.test/; echo b > b.txt"}}`+"\n")
	out := p.sh(0, "remit run --workspace w --policy builtin:workspace --policy network.rego --program-network script.jsonl")
	require.Contains(t, out, "what a program sends to another host st")
	require.Equal(t, "b\n", p.content("w/b.txt"))
	require.Contains(t, p.sh(0, "remit revert --workspace w --last"), "reverted")
	require.NoFileExists(t, filepath.Join(p.dir, "w/b.txt"))
}

func TestProgramInGo(t *testing.T) {
	t.Chdir(t.TempDir())
	// guide: guides/program.md
	rt, err := agent.New(agent.Tools(builtin.Programs()...), agent.Root("workspace", ".")) // builtin is tool/builtin
	// end of guide
	require.NoError(t, err)
	defer func() { _ = rt.Close() }()
	_, err = call(t, session(t, rt), "shell_run", map[string]any{"script": "echo hi > a.txt"})
	require.NoError(t, err)
	data, err := os.ReadFile("a.txt")
	require.NoError(t, err)
	require.Equal(t, "hi\n", string(data))
}

// TestServeForClients checks that an MCP client starts the configured command.
func TestServeForClients(t *testing.T) {
	shell(t)
	p := newPlace(t)
	stand := "#!/bin/sh\n[ \"$1 $2 $3 $4\" = 'mcp add remit --' ] || exit 9\nshift 4\nexec \"$@\" </dev/null\n"
	for _, client := range []string{"claude", "codex"} {
		p.write("bin/"+client, stand)
		require.NoError(t, os.Chmod(filepath.Join(p.dir, "bin", client), 0o700))
	}
	p.sh(0, `PATH="$PWD/bin:$PATH"; mkdir shop; cd shop`+"\n"+take(t, "guides/serve.md", "sh", 0))
}

// TestServeByHTTP checks the first lines of a server over HTTP, with another
// port.
func TestServeByHTTP(t *testing.T) {
	shell(t)
	p := newPlace(t)
	want := strings.Split(take(t, "guides/serve.md", "console", 0), "\n")
	command := strings.Fields(strings.TrimPrefix(want[0], "$ "))
	require.Equal(t, []string{"remit", "serve", "--http", "127.0.0.1:8321"}, command)
	cmd := exec.Command(filepath.Join(binary(t), "remit"), "serve", "--http", "127.0.0.1:0")
	cmd.Dir, cmd.Env = p.dir, p.env
	out, in, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = out.Close() }()
	cmd.Stdout, cmd.Stderr = in, in
	require.NoError(t, cmd.Start())
	require.NoError(t, in.Close())
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	lines := bufio.NewScanner(out)
	shape := func(line string) string {
		line = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(line, "ADDR")
		return regexp.MustCompile(`in \S*/state/remit/\S+/mcp/token`).ReplaceAllString(line, "in TOKEN")
	}
	for _, line := range want[1:3] {
		require.True(t, lines.Scan())
		require.Equal(t, shape(line), shape(lines.Text()))
	}
}

// configuration reads a gateway's configuration.
func configuration(t *testing.T, text string) config.Config {
	t.Helper()
	c, err := config.Parse("gateway.json", []byte(text), func(string) (string, bool) { return "a value", true })
	require.NoError(t, err, text)
	return c
}

func TestGatewayConfigurations(t *testing.T) {
	require.Len(t, configuration(t, take(t, "guides/gateway.md", "jsonc", 0)).Servers, 3)
	require.Len(t, configuration(t, `{"mcpServers": {`+take(t, "guides/gateway-login.md", "jsonc", 0)+`}}`).Servers, 1)
	require.Len(t, configuration(t, `{"mcpServers": {"build": {"command": "make"}}, "remit": {"servers": {`+take(t, "reference/gateway-config.md", "jsonc", 0)+`}}}`).Servers, 1)
	require.Len(t, configuration(t, `{"mcpServers": {"mail": {"command": "mail"}}, "remit": {"servers": {`+take(t, "guides/gateway.md", "jsonc", 1)+`}}}`).Servers[0].Tools["send"].Roles, 2)
	server, entry, found := strings.Cut(take(t, "guides/gateway.md", "jsonc", 2), "// and under \"remit\", \"servers\":\n")
	require.True(t, found)
	require.Len(t, configuration(t, `{"mcpServers": {`+server+`}, "remit": {"servers": {`+entry+`}}}`).Servers, 1)
	require.Len(t, configuration(t, `{"mcpServers": {"filesystem": {"command": "node"}}, `+take(t, "README.md", "jsonc", 0)+`}`).Servers, 1)
}

// TestServices checks that a file of services is read completely before a call
// runs. Its secrets come from the environment and from an encrypted file; the
// keyring is read when a call uses it.
func TestServices(t *testing.T) {
	shell(t)
	p := newPlace(t)
	text := take(t, "guides/http.md", "json", 0)
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	p.write("elsewhere/services.json", text)
	p.write("elsewhere/ca.pem", string(certificate))
	p.write("script.jsonl", `{"tool":"file_write","args":{"path":"a.txt","content":"hi"}}`+"\n")
	p.sh(0, "cd elsewhere; echo a long value | remit secret set other --file secrets.age; mv secrets.age.key identity.txt")
	p.sh(0, "mkdir ws; CI_TOKEN=abcdefghijkl remit run --workspace ws --services elsewhere/services.json script.jsonl")
	p.write("elsewhere/services.json", strings.Replace(text, `"keyed": true`, `"keyd": true`, 1))
	out := p.sh(2, "remit run --workspace ws --services elsewhere/services.json script.jsonl")
	require.Contains(t, out, "keyd")
}

// TestConnect runs the commands of the guide to clients, with a client that has
// one server.
func TestConnect(t *testing.T) {
	shell(t)
	p := newPlace(t)
	before := p.client(t)
	p.sh(0, take(t, "guides/connect.md", "sh", 0))
	require.Equal(t, before, p.settings(t), "as it was")
}

// TestReadmeGateway connects, drafts, calls and reverts, as README.md
// describes.
func TestReadmeGateway(t *testing.T) {
	shell(t)
	p := newPlace(t)
	before := p.client(t)
	lines := strings.Split(strings.TrimSpace(take(t, "README.md", "sh", 1)), "\n")
	require.Len(t, lines, 3)
	p.sh(0, lines[0])
	p.ask(t, "note", map[string]any{"text": "hi"})
	require.Equal(t, "hi", p.content("note.txt"))
	p.sh(6, lines[1]) // the server's other effects are unknown
	require.NoFileExists(t, filepath.Join(p.dir, "note.txt"))
	p.sh(0, lines[2])
	require.Equal(t, before, p.settings(t))
}

// TestGatewayInstall checks that npm installs the server of the guide where a
// sandboxed server can read it.
func TestGatewayInstall(t *testing.T) {
	text := take(t, "guides/gateway.md", "sh", 0)
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("there is no npm")
	}
	p := newPlace(t)
	p.sh(0, replaced(t, text, "/home/me/servers", filepath.Join(p.home, "servers")))
	server, _, _ := strings.Cut(take(t, "guides/gateway.md", "jsonc", 2), "// and under")
	c := configuration(t, `{"mcpServers": {`+replaced(t, server, "/home/me/servers", filepath.Join(p.home, "servers"))+`}}`)
	require.FileExists(t, c.Servers[0].Args[0])
}

// TestCommandsInSentences checks that each command in a sentence exists, with
// its flags.
func TestCommandsInSentences(t *testing.T) {
	shell(t)
	dir, helps := binary(t), map[string]string{}
	help := func(verbs ...string) string {
		key := strings.Join(verbs, " ")
		if _, known := helps[key]; !known {
			out, err := exec.Command(filepath.Join(dir, "remit"), append(verbs, "--help")...).CombinedOutput()
			if helps[key] = string(out); err != nil {
				helps[key] = ""
			}
		}
		return helps[key]
	}
	code, flag := regexp.MustCompile("`remit ([^`]+)`"), regexp.MustCompile(`--[a-z][a-z-]*`)
	verb := regexp.MustCompile(`^[a-z][a-z-]*$`)
	found := 0
	for _, name := range allPages(t) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, m := range code.FindAllStringSubmatch(string(text), -1) {
			words := strings.Fields(m[1])
			usage := help(words[0])
			require.Contains(t, usage, "remit "+words[0], "%s: %s", filepath.Base(name), m[0])
			if len(words) > 1 && verb.MatchString(words[1]) && strings.Contains(usage, "Available Commands:") {
				require.Contains(t, usage, "\n  "+words[1]+" ", "%s: %s", filepath.Base(name), m[0])
				usage = help(words[0], words[1])
			}
			for _, f := range flag.FindAllString(m[1], -1) {
				require.Regexp(t, f+`\b`, usage, "%s: %s", filepath.Base(name), m[0])
			}
			found++
		}
	}
	require.Greater(t, found, 20)
}
