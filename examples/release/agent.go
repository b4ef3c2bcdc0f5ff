package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/database"
	"github.com/remit-dev/remit/ctxperm/database/sqlite"
	"github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/effect"
	journal "github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

//go:embed policy.rego
var rules embed.FS

// app is a runtime with all its resources. Another process creates an equal
// one for the same folder: it can revert what the first one did.
type app struct {
	*agent.Runtime
	closers []func() error
}

// Close releases the desk's resources, last opened first.
func (d *app) Close() error {
	var errs []error
	for i := range d.closers {
		errs = append(errs, d.closers[len(d.closers)-1-i]())
	}
	return errors.Join(errs...)
}

// newApp has tools for files, programs, rows, the site at url and mail. Their
// effects are on the journal in the folder.
func newApp(ctx context.Context, w *releaseEnv, url string, more ...agent.Option) (_ *app, err error) {
	d := &app{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	record, err := journal.Open(ctx, w.state())
	if err != nil {
		return d, err
	}
	d.closers = append(d.closers, record.Close)
	rows, err := database.New([]database.Kind{sqlite.Kind()}, map[string]string{"packages": "sqlite:" + w.database()})
	if err != nil {
		return d, err
	}
	d.closers = append(d.closers, rows.Close)
	client, err := newClient(url)
	if err != nil {
		return d, err
	}
	calls, err := siteTools(url)
	if err != nil {
		return d, err
	}
	mail, err := mailTool(w.mail())
	if err != nil {
		return d, err
	}
	policy, err := rego.Load(rego.Source{FS: rules})
	if err != nil {
		return d, err
	}
	d.Runtime, err = agent.New(append(more,
		agent.Tools(builtin.Files()...), agent.Root("workspace", w.workspace()),
		agent.Tools(builtin.Programs()...),
		agent.Tools(builtin.Databases()...), agent.Driver(rows),
		agent.Tools(calls...), agent.Driver(client),
		agent.Tools(mail), agent.Policy(policy), agent.Journal(record))...)
	if err == nil {
		d.closers = append(d.closers, d.Runtime.Close)
	}
	return d, err
}

// newClient reaches the public internet, as every client does, and the site.
func newClient(site string) (*web.Client, error) {
	at, err := url.Parse(site)
	if err != nil {
		return nil, err
	}
	network, err := web.ParseNetwork(at.Host)
	if err != nil {
		return nil, err
	}
	return web.New(web.Options{Allow: []web.Network{network}})
}

// siteTools are calls of the site. Each declares its compensation; a call
// without one cannot be reverted.
func siteTools(site string) (tools []tool.Tool, err error) {
	for _, c := range []builtin.HTTPCall{
		{
			Name: "release_create", Description: "Publish a release.", Method: "POST", URL: site + "/releases",
			Input: object("version", "file"),
			Keyed: true, // so that the site can identify the item of this call, also after a lost response
			Undo:  &web.Compensation{Item: site + "/releases/{id}", Find: site + "/releases?key={key}", FindIn: "data"},
		},
		{
			Name: "channel_set", Description: "Say which release a channel has.", Method: "PUT", URL: site + "/channels/{name}",
			Input: object("name", "release"),
			Undo:  &web.Compensation{Method: "PUT", Before: true},
		},
		{
			Name: "release_remove", Description: "Withdraw a release.", Method: "DELETE", URL: site + "/releases/{id}",
			Undo: &web.Compensation{Method: "PUT", Before: true},
		},
		{
			Name: "team_tell", Description: "Write into the team's chat.", Method: "POST", URL: site + "/chat",
			Input: object("text"),
		},
	} {
		made, err := builtin.HTTPTool(c)
		if err != nil {
			return nil, err
		}
		tools = append(tools, made)
	}
	return tools, nil
}

// object returns the schema of an object of required texts.
func object(names ...string) json.RawMessage {
	properties := map[string]any{}
	for _, name := range names {
		properties[name] = map[string]string{"type": "string"}
	}
	raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": names, "additionalProperties": false})
	if err != nil {
		panic(err)
	}
	return raw
}

// letterArgs is the model's input.
type letterArgs struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// mailTool writes mail into an outgoing folder. It cannot be reverted, but it
// can wait for the commit.
func mailTool(folder string) (tool.Tool, error) {
	return tool.CreateTyped("mail_send", "Send a mail.", nil,
		func(_ context.Context, tc ctxperm.ToolContext, in letterArgs) (string, error) {
			name := strings.TrimPrefix(tc.Call().Key, "sha256:") + ".eml" // the same for each release of this call
			return "sent", os.WriteFile(filepath.Join(folder, name), []byte("To: "+in.To+"\n\n"+in.Text), 0o600)
		},
		tool.Effect(effect.Deferrable))
}

// work is the list of calls that a model would request, in order.
var work = []struct {
	tool string
	args tool.Args
}{
	{"team_tell", tool.Args{"text": "Release 1.5.0 begins."}},
	{"file_edit", tool.Args{"path": "CHANGELOG.md", "old": "## Unreleased", "new": "## 1.5.0"}},
	{"file_delete", tool.Args{"path": "docs/beta.md"}},
	{"shell_run", tool.Args{"script": `set -e
		sed -i 's/1\.4\.2/1.5.0/' VERSION bin/greet docs/install.md
		make -s dist
		git add -A
		git commit -qm "Release 1.5.0"
		git tag v1.5.0`}},
	{"sql_execute", tool.Args{"database": "packages", "sql": "UPDATE packages SET version = ? WHERE name = ?", "params": []any{"1.5.0", "greet"}}},
	{"sql_execute", tool.Args{"database": "packages", "sql": "UPDATE releases SET state = 'old' WHERE package = 'greet'"}},
	{"sql_execute", tool.Args{"database": "packages", "sql": "INSERT INTO releases (package, version, state) VALUES ('greet', '1.5.0', 'current')"}},
	{"sql_execute", tool.Args{"database": "packages", "sql": "DELETE FROM drafts WHERE version = '1.5.0'"}},
	{"release_create", tool.Args{"version": "1.5.0", "file": "greet-1.5.0.tar"}},
	{"channel_set", tool.Args{"name": "stable", "release": "1.5.0"}},
	{"release_remove", tool.Args{"id": "r2"}},
	{"mail_send", tool.Args{"to": "users@example.com", "text": "greet 1.5.0 is out."}},
}

// prepare begins a transaction and makes the calls in it. A failed call is
// reported like any other, and the work continues: the person decides.
func (d *app) prepare(ctx context.Context, tell func(n int, out tool.Outcome)) (*agent.Txn, error) {
	s, err := d.Session(ctx, perm.Principal{ID: "release-agent"})
	if err != nil {
		return nil, err
	}
	tx, err := s.Begin(ctx)
	if err != nil {
		return nil, err
	}
	for n, call := range work {
		out, err := tx.Invoke(ctx, call.tool, call.args)
		var refused *tool.CallError
		if err != nil && !errors.As(err, &refused) {
			return tx, err
		}
		tell(n+1, out)
	}
	return tx, nil
}
