package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// workspace is the root that programs of these tools are started in.
const workspace = "workspace"

// longest is the most that timeout_s can ask for, and what a call gets that asks for
// nothing.
const (
	longest = time.Hour
	usual   = 2 * time.Minute
)

// Tools returns the tools. The one for scripts uses bash if this machine has it in a
// folder that programs are looked for in, else sh. Tools panics if one of the literals of this package does not
// freeze, which its test would find.
func Tools() []tool.Tool { return toolsOf(shell(), false) }

// NetworkTools returns the same tools, for programs that reach the hosts that the policy
// allows.
func NetworkTools() []tool.Tool { return toolsOf(shell(), true) }

// toolsOf are the tools of a machine that has a shell.
func toolsOf(shell string, network bool) (out []tool.Tool) {
	for _, t := range []struct {
		spec tool.Spec
		cmd  func(json.RawMessage) (handle.Cmd, error)
	}{{runSpec(), runCmd}, {shellSpec(shell), shellCmd(shell)}} {
		t.spec.Provenance = provenance.Source{Kind: provenance.Builtin, Name: "tool/builtin/process"} // policies read the name: it stays
		t.spec.Version = "1"
		if network {
			t.spec, t.cmd = withNetwork(t.spec, t.cmd)
		}
		made, err := Program(t.spec, t.cmd)
		if err == nil && !network { // what the kit found out is about the others
			made, err = made.Graded(grades)
		}
		if err != nil {
			panic(err)
		}
		out = append(out, made)
	}
	return out
}

// withNetwork returns a tool whose programs reach hosts through a proxy, each decided
// during the call. It stays reversible: that is about what a revert restores, and the
// policy decides each host besides.
func withNetwork(s tool.Spec, cmd func(json.RawMessage) (handle.Cmd, error)) (tool.Spec, func(json.RawMessage) (handle.Cmd, error)) {
	s.Description = strings.NewReplacer(
		" and without network", ", with network through the proxy of HTTPS_PROXY, to hosts that the policy allows", ", without network", ", with network through the proxy of HTTPS_PROXY, to hosts that the policy allows",
		"What it changes can be reverted.", "What it changes here can be reverted; what it sends stays sent.",
	).Replace(s.Description)
	s.Needs = append(needs(), perm.Access(perm.Connect, "https://*:*/**"), perm.Access(perm.Connect, "http://*:*/**"))
	s.Destination, s.Output = tool.ModelChosen, outputWithHosts
	return s, func(in json.RawMessage) (handle.Cmd, error) {
		c, err := cmd(in)
		c.Egress = true
		return c, err
	}
}

// needs are what programs need by default.
func needs() []perm.ResourceAccess {
	return []perm.ResourceAccess{
		perm.Access(perm.Execute, "exec://*"), perm.Access(perm.Execute, "exec:///**"), perm.Access(perm.Execute, "file://*/**"),
		perm.Access(perm.Read, "file://*/**"), perm.Access(perm.Write, "file://*/**"), perm.Access(perm.Delete, "file://*/**"),
	}
}

// Program implements builtin.ProgramTool, which documents it.
func Program(s tool.Spec, cmd func(in json.RawMessage) (handle.Cmd, error)) (tool.Tool, error) {
	if s.Needs == nil {
		s.Needs = needs()
	}
	if s.EffectClass == "" {
		s.EffectClass = effect.Reversible
	}
	if s.Verify == nil && s.EffectClass == effect.Reversible {
		s.Verify = verify.Changes
	}
	if s.Destination == "" {
		s.Destination = tool.NoDestination
	}
	s.AccessFor = func(in json.RawMessage) ([]perm.ResourceAccess, error) {
		c, err := cmd(in)
		if err != nil {
			return nil, err
		}
		all, err := c.Access()
		if err != nil {
			return nil, plainly(err)
		}
		return all, nil
	}
	s.Execute = func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
		c, err := cmd(in)
		if err != nil {
			return tool.Result{}, err
		}
		if c.Network && s.EffectClass == effect.Reversible {
			return tool.Result{}, fmt.Errorf("%w: a program that can use the network cannot be reverted, so its tool must not be reversible", ctxperm.ErrInvalid)
		}
		return execute(ctx, tc, c)
	}
	return tool.FromSpec(internals.InSandbox(s))
}

// internals are what package tool hides from tool authors.
var internals = toolaccess.Of[tool.Tool, tool.Spec, tool.Registry, tool.RevertContext]()

// output is what a call returns.
type output struct {
	ExitCode  int      `json:"exit_code"`
	Signal    string   `json:"signal,omitempty"`
	Stdout    string   `json:"stdout"`
	Stderr    string   `json:"stderr"`
	Dropped   int64    `json:"dropped,omitempty"`
	Wrote     int      `json:"wrote"`
	LeftOut   []string `json:"left_out,omitempty"`
	Survivors int      `json:"survivors,omitempty"`
	Sandbox   string   `json:"sandbox"`
	Missing   []string `json:"missing,omitempty"`

	Hosts        []handle.Host        `json:"hosts,omitempty"`
	Restrictions []handle.Restriction `json:"restrictions,omitempty"`
}

func execute(ctx context.Context, tc ctxperm.ToolContext, c handle.Cmd) (tool.Result, error) {
	r, err := handle.Run(ctx, tc, c)
	if errors.Is(err, handle.ErrTimeout) {
		return tool.Result{}, fmt.Errorf("%w: %w", tool.ErrTimeout, err)
	}
	if err != nil {
		return tool.Result{}, err
	}
	raw, err := canon.Marshal(answer(r))
	return tool.Result{JSON: raw, Text: resultText(r)}, err
}

// answer makes the structured result of a call.
func answer(r handle.Result) output {
	out := output{
		ExitCode: r.Code, Signal: r.Signal, Stdout: text(r.Stdout), Stderr: text(r.Stderr), Dropped: r.TruncatedBytes,
		Wrote: r.ChangedFiles, LeftOut: r.SkippedChanges, Survivors: r.Survivors, Sandbox: string(r.Level), Missing: r.MissingProtections,
	}
	out.Hosts = r.Hosts
	out.Restrictions = reportedRestrictions(r)
	return out
}

// text is what a program wrote, as JSON can hold it.
func text(p []byte) string { return strings.ToValidUTF8(string(p), string(utf8.RuneError)) }

// resultText is the result in a model's words.
func resultText(r handle.Result) string {
	var b strings.Builder
	b.WriteString(text(r.Stdout))
	if len(r.Stderr) > 0 {
		_, _ = fmt.Fprintf(&b, "\n[stderr]\n%s", text(r.Stderr))
	}
	if r.TruncatedBytes > 0 {
		_, _ = fmt.Fprintf(&b, "\n[%d bytes out of the middle were not kept]", r.TruncatedBytes)
	}
	switch {
	case r.Signal != "":
		_, _ = fmt.Fprintf(&b, "\n[it was ended by a signal: %s]", r.Signal)
	case r.Code != 0:
		_, _ = fmt.Fprintf(&b, "\n[exit code %d]", r.Code)
	}
	for _, what := range r.SkippedChanges {
		_, _ = fmt.Fprintf(&b, "\n[not applied: %s]", what)
	}
	for _, h := range r.Hosts {
		if h.Connections > 0 {
			_, _ = fmt.Fprintf(&b, "\n[network: %s: %d bytes sent, %d received]", h.Origin, h.Sent, h.Received)
		}
	}
	for _, met := range reportedRestrictions(r) {
		_, _ = fmt.Fprintf(&b, "\n[sandbox: %s]", met.Text)
	}
	return b.String()
}

// reportedRestrictions are the rules of the sandbox that the answer names: all that the program met
// if it failed or complained, since a script can succeed whose commands did not. Of
// a program that did neither they are what it named and could not see: what looks
// empty to it may not be.
func reportedRestrictions(r handle.Result) (all []handle.Restriction) {
	if r.Signal != "" || r.Code != 0 || len(r.Stderr) > 0 {
		return r.Restrictions
	}
	for _, met := range r.Restrictions {
		if met.Rule == "hidden" || met.Rule == handle.RuleDeniedHost {
			all = append(all, met)
		}
	}
	return all
}

func plainly(err error) error {
	return fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "run: "+ctxperm.ErrInvalid.Error()+": "))
}

// object is a closed schema of an object.
func object(properties, required string) json.RawMessage {
	return json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` + properties + `},"required":[` + required + `]}`)
}

const (
	cwdArgument     = `,"cwd":{"type":"string","minLength":1,"description":"Folder of the workspace to start in, such as src; the workspace itself by default."}`
	timeoutArgument = `,"timeout_s":{"type":"integer","minimum":1,"maximum":3600,"description":"Seconds until it is killed, 120 by default; nothing of what it wrote is kept then."}`
)

// outputSchema is that of output without hosts.
var outputSchema = outputWith("")

// outputWithHosts is that of output.
var outputWithHosts = outputWith(`"hosts":{"type":"array","items":{"type":"object","additionalProperties":false,"required":["origin","connections","sent","received"],` +
	`"properties":{"origin":{"type":"string"},"connections":{"type":"integer"},"sent":{"type":"integer"},"received":{"type":"integer"},"refused":{"type":"string"}}}},`)

func outputWith(hosts string) json.RawMessage {
	return object(`"exit_code":{"type":"integer"},"signal":{"type":"string"},"stdout":{"type":"string"},"stderr":{"type":"string"},`+
		`"dropped":{"type":"integer"},"wrote":{"type":"integer"},"left_out":{"type":"array","items":{"type":"string"}},"survivors":{"type":"integer"},`+
		`"sandbox":{"enum":["partial","strict"]},"missing":{"type":"array","items":{"type":"string"}},`+
		hosts+`"restrictions":{"type":"array","items":{"type":"object","additionalProperties":false,"properties":{"rule":{"type":"string"},"text":{"type":"string"}},"required":["rule","text"]}}`,
		`"exit_code","stdout","stderr","wrote","sandbox"`)
}
