package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
	"github.com/remit-dev/remit/verify"
)

// The names of the tools, the same for all clients.
const (
	shellName    = "client_shell"          // a command in the sandbox
	observedName = "client_shell_observed" // a command that the client runs, in an observed workspace
	writeName    = "client_write"
	editName     = "client_edit"
	outsideName  = "client_outside" // a write or an edit of a file outside the workspace
	readName     = "client_read"
	searchName   = "client_search"
	fetchName    = "client_fetch"
	innerName    = "client_inner"      // acts only inside the client
	lateName     = "client_background" // what changed while a command ran in the background
	otherName    = "client_other"      // everything else, such as tools of MCP servers
)

// workspace is the root of the project.
const workspace = "workspace"

// longest bounds a use of a tool: the client has its own, shorter limits.
const longest = 24 * time.Hour

// internals are what package tool hides from tool authors.
var internals = toolaccess.Of[tool.Tool, tool.Spec, tool.Registry, tool.RevertContext]()

// arguments are the arguments of all tools. Their schema is open: a client can
// give more than policies need.
type arguments struct {
	Client  string   `json:"client"`
	Tool    string   `json:"tool"`
	Command string   `json:"command"`
	Cwd     string   `json:"cwd"`
	Paths   []string `json:"paths"`
	URL     string   `json:"url"`
}

var inputSchema = json.RawMessage(`{"type":"object","properties":{"client":{"type":"string"},"tool":{"type":"string"},"agent":{"type":"string"},` +
	`"command":{"type":"string"},"cwd":{"type":"string"},"background":{"type":"boolean"},"paths":{"type":"array","items":{"type":"string"}},` +
	`"content":{"type":"string"},"old":{"type":"string"},"new":{"type":"string"},"patch":{"type":"string"},"cut":{"type":"boolean"},` +
	`"pattern":{"type":"string"},"url":{"type":"string"},"query":{"type":"string"},"input":{}},"required":["client","tool"],"additionalProperties":false}`)

// roles are those of the arguments of all tools. The client and remit set the
// first ones, and the model does not.
var roles = provenance.Roles{
	"/client": provenance.Selector, "/tool": provenance.Selector, "/agent": provenance.Selector, "/cut": provenance.Selector,
	"/content": provenance.Payload, "/old": provenance.Payload, "/new": provenance.Payload, "/patch": provenance.Payload,
	"/pattern": provenance.Selector, "/query": provenance.Selector,
}

// Tools returns the tools that uses of a client's tools become. Only calls of a
// Server run them.
func Tools() []tool.Tool {
	anywhere := func(a perm.Action) []perm.ResourceAccess {
		return []perm.ResourceAccess{perm.Access(a, "file://"+workspace+"/**"), perm.Access(a, "file://"+perm.OutsideRoot+"/**")}
	}
	changes := []perm.ResourceAccess{perm.Access(perm.Write, "file://"+workspace+"/**"), perm.Access(perm.Delete, "file://"+workspace+"/**")}
	tree := append(anywhere(perm.Read), append(changes, perm.Access(perm.List, "file://"+workspace+"/**"))...)
	programs := []perm.ResourceAccess{perm.Access(perm.Execute, "exec://*"), perm.Access(perm.Execute, "exec:///**")}
	specs := []tool.Spec{
		{
			Name: observedName, Description: "Run a command with the agent's own shell, in an observed workspace.",
			Needs: append(programs, tree...), AccessFor: observedAccess, EffectClass: effect.Pivot, Coverage: effect.Observed, Observed: []string{workspace},
			ParseScript: scriptOf, Execute: observe,
		},
		{
			Name: writeName, Description: "Write files with the agent's own tool.", Needs: changes, AccessFor: pathAccess(perm.Write),
			EffectClass: effect.Reversible, Confinement: tool.Handles, Coverage: effect.Declared, Destination: tool.NoDestination, Verify: verify.Changes, Execute: change,
		},
		{
			Name: editName, Description: "Edit files with the agent's own tool.", Needs: changes, AccessFor: pathAccess(perm.Write),
			EffectClass: effect.Reversible, Confinement: tool.Handles, Coverage: effect.Declared, Destination: tool.NoDestination, Verify: verify.Changes, Execute: change,
		},
		{
			Name: outsideName, Description: "Write or edit files outside the workspace with the agent's own tool.", Needs: anywhere(perm.Write),
			AccessFor: pathAccess(perm.Write), EffectClass: effect.Pivot, Execute: outside,
		},
		{
			Name: readName, Description: "Read files with the agent's own tool.", Needs: anywhere(perm.Read), AccessFor: pathAccess(perm.Read),
			EffectClass: effect.Pure, Destination: tool.NoDestination, Execute: pass,
		},
		{
			Name: searchName, Description: "Search files with the agent's own tool.", Needs: anywhere(perm.Read), AccessFor: pathAccess(perm.Read),
			EffectClass: effect.Pure, Destination: tool.NoDestination, Execute: pass,
		},
		{
			Name: fetchName, Description: "Fetch a page or search the web with the agent's own tool.",
			Needs:     []perm.ResourceAccess{perm.Access(perm.Connect, "https://*:*/**"), perm.Access(perm.Connect, "http://*:*/**")},
			AccessFor: urlAccess, EffectClass: effect.Pure, Destination: tool.ModelChosen,
			OutputContent: &provenance.Content{Trust: provenance.Untrusted}, Execute: pass,
		},
		{
			Name: innerName, Description: "Use a tool that acts only inside the agent, or by other uses of tools.",
			EffectClass: effect.Pure, Destination: tool.NoDestination, Execute: pass,
		},
		{
			Name: lateName, Description: "Record what changed in the workspace while a command of the agent ran in the background.",
			Needs:       []perm.ResourceAccess{perm.Access(perm.Read, "file://"+workspace+"/**")},
			EffectClass: effect.Pure, Coverage: effect.Observed, Observed: []string{workspace}, Destination: tool.NoDestination, Execute: lookLate,
		},
		{
			Name: otherName, Description: "Use another tool of the agent, such as one of an MCP server.", Needs: tree,
			EffectClass: effect.Pivot, Coverage: effect.Observed, Observed: []string{workspace}, Execute: observe,
		},
	}
	out := []tool.Tool{must(shellTool())}
	for _, s := range specs {
		out = append(out, must(tool.FromSpec(common(s))))
	}
	return out
}

// must panics for a literal of this package that does not freeze; a test makes
// all of them.
func must(t tool.Tool, err error) tool.Tool {
	if err != nil {
		panic(err)
	}
	return t
}

func common(s tool.Spec) tool.Spec {
	s.Input, s.Roles, s.Version, s.Tags = inputSchema, roles, "1", []string{"client"}
	s.Provenance = provenance.Source{Kind: provenance.Builtin, Name: "hooks"}
	s.Hints.Timeout = longest
	return s
}

// decoded reads the arguments that a tool uses. The others are for policies.
func decoded(raw json.RawMessage) (in arguments, err error) {
	return in, json.Unmarshal(raw, &in) // canonical and valid: the runtime checked it
}

func shellAccess(raw json.RawMessage) ([]perm.ResourceAccess, error) {
	in, err := decoded(raw)
	if err != nil {
		return nil, err
	}
	c, err := in.cmd()
	if err != nil {
		return nil, err
	}
	return c.Access()
}

// observedAccess is shellAccess for a command that can run in any folder.
func observedAccess(raw json.RawMessage) ([]perm.ResourceAccess, error) {
	in, err := decoded(raw)
	if err != nil {
		return nil, err
	}
	return process.Cmd{Argv: []string{"bash", "-c", in.Command}}.Access()
}

// cmd returns the command as a program of the sandbox.
func (in arguments) cmd() (process.Cmd, error) {
	if in.Command == "" {
		return process.Cmd{}, errors.New(`argument "command": it is empty`)
	}
	if path.IsAbs(in.Cwd) {
		return process.Cmd{}, errors.New(`argument "cwd": the folder lies outside the workspace; start the agent in that folder, or name it in the command`)
	}
	return process.Cmd{Argv: []string{"bash", "-c", in.Command}, Root: workspace, Dir: in.Cwd}, nil
}

// pathAccess returns the accesses to the named files.
func pathAccess(a perm.Action) func(json.RawMessage) ([]perm.ResourceAccess, error) {
	return func(raw json.RawMessage) (all []perm.ResourceAccess, err error) {
		in, err := decoded(raw)
		if err != nil {
			return nil, err
		}
		for _, name := range in.Paths {
			root := workspace
			if path.IsAbs(name) {
				root, name = perm.OutsideRoot, strings.TrimPrefix(name, "/")
			}
			r, err := perm.FileResource(root, name)
			if err != nil {
				return nil, err
			}
			all = append(all, perm.Access(a, r.String()))
		}
		return all, nil
	}
}

// urlAccess returns the access to the named page. A search names none.
func urlAccess(raw json.RawMessage) ([]perm.ResourceAccess, error) {
	in, err := decoded(raw)
	if err != nil || in.URL == "" {
		return nil, err
	}
	u, err := url.Parse(in.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, errors.New(`argument "url": valid is a URL that begins with https:// or http://`)
	}
	r, err := perm.ParseResource(u.Scheme + "://" + strings.ToLower(u.Host) + u.EscapedPath())
	if err != nil {
		return nil, err
	}
	return []perm.ResourceAccess{{Action: perm.Connect, Resource: r.String(), Method: "GET"}}, nil
}

func scriptOf(raw json.RawMessage) *perm.ScriptFacts {
	in, err := decoded(raw)
	if err != nil {
		return &perm.ScriptFacts{Commands: []perm.CommandFacts{}, Redirects: []perm.RedirectFacts{}, Dynamic: true, Error: err.Error()}
	}
	return builtin.ParseScript(in.Command)
}

// pass lets the client use a tool that changes nothing here. The client does
// not report its end.
func pass(ctx context.Context, _ ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
	_, err := usedBy(ctx)
	return tool.Result{}, err
}

// change saves the named files, lets the client change them, and records what
// it left.
func change(ctx context.Context, tc ctxperm.ToolContext, raw json.RawMessage) (tool.Result, error) {
	c, err := usedBy(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	if c.session.space.observing.Load() > 0 { // that call has the workspace: join it
		return observe(ctx, tc, raw)
	}
	in, err := decoded(raw)
	if err != nil {
		return tool.Result{}, tool.NoEffect(err)
	}
	f, err := files.Open(tc, workspace)
	if err != nil {
		return tool.Result{}, err
	}
	saved, err := f.Observe(ctx, append(newFolders(c.session.space.Dir, in.Paths), in.Paths...)...)
	if err != nil {
		return tool.Result{}, err // denied, or without effect so far
	}
	r := c.proceed(ctx)
	if err := saved.RecordChanges(context.WithoutCancel(ctx)); err != nil {
		return tool.Result{}, err
	}
	return r.result()
}

// newFolders returns the folders above some paths that are missing: the client
// makes them with the files.
func newFolders(root string, paths []string) (missing []string) {
	for _, name := range paths {
		for name = path.Dir(name); name != "." && name != "/"; name = path.Dir(name) {
			if _, err := os.Lstat(filepath.Join(root, filepath.FromSlash(name))); !errors.Is(err, os.ErrNotExist) {
				break
			}
			missing = append(missing, name)
		}
	}
	return missing
}

// observe saves the workspace, lets the client act, and records the
// differences.
func observe(ctx context.Context, tc ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
	return observed(ctx, tc, process.SnapshotOptions{Join: true, NoWait: true}, func(c *call) report { return c.proceed(ctx) })
}

// lookLate records what changed since the last observed use, while a command
// runs in the background.
func lookLate(ctx context.Context, tc ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
	return observed(ctx, tc, process.SnapshotOptions{Join: true, Late: true}, func(*call) report { return report{} })
}

// observed saves the workspace, lets act return, and records the differences.
func observed(ctx context.Context, tc ctxperm.ToolContext, how process.SnapshotOptions, act func(*call) report) (tool.Result, error) {
	c, err := usedBy(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	k, err := ctxperm.DriverOf[*process.Snapshotter](ctx, tc)
	if err != nil {
		return tool.Result{}, tool.NoEffect(err)
	}
	saved, err := k.TakeWith(ctx, tc, how, []process.Folder{{Root: workspace}})
	if err != nil {
		return tool.Result{}, tool.NoEffect(err)
	}
	defer saved.Discard()
	c.session.space.observing.Add(1)
	r := act(c)
	c.session.space.observing.Add(-1)
	// A client that ended or went on to another use has no hold on the workspace
	// any more; that its programs live on is part of coverage observed.
	if err := saved.RecordChanges(context.WithoutCancel(ctx), true); err != nil {
		return tool.Result{}, err
	}
	if how.Late { // nobody would expect a revert of what happened a while ago
		return r.result()
	}
	if err := saved.AuthorizeChanges(ctx); err != nil {
		c.notices = append(c.notices, "remit reverts what the call changed in the workspace: "+err.Error())
		return tool.Result{}, err
	}
	return r.result()
}
