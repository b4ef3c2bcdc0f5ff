package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/binding"
	"github.com/remit-dev/remit/mcp/gateway/internal/definition"
	"github.com/remit-dev/remit/mcp/gateway/internal/naming"
	"github.com/remit-dev/remit/mcp/gateway/internal/undo"
	"github.com/remit-dev/remit/mcp/gateway/internal/upstream"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
	"github.com/remit-dev/remit/mcp/internal/rawresult"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// mirroredTool is one tool of a server as a tool of the runtime.
type mirroredTool struct {
	u        *upstream.Upstream
	def      definition.Definition
	identity string
	entry    config.Entry
	undo     undo.Tool
}

// undoVersion must change when Revert interprets the records of a call
// differently.
const undoVersion = "gateway/1"

func (m mirroredTool) spec(loose bool) (tool.Spec, error) {
	self, err := perm.KindMCP.Resource(m.u.Server.Name, m.def.Name)
	if err != nil {
		return tool.Spec{}, err
	}
	e := m.entry
	s := tool.Spec{
		Name: naming.ForRuntime(m.u.Server.Name, m.def.Name), Description: m.def.Description, Tags: []string{"mcp", "untrusted"}, OutputContent: m.content(),
		Input: m.def.InputSchema(loose), Needs: append(m.u.Requests.Needs(), perm.Access(perm.Call, self.String())),
		EffectClass: e.Class, Destination: e.Destination, Execute: m.execute,
		Provenance: provenance.Source{Kind: provenance.MCP, Name: naming.ForClients(m.u.Server.Name, m.def.Name), Version: m.def.Digest},
		Hints:      tool.Hints{Timeout: e.Timeout, Idempotent: e.Idempotent, Risk: e.Risk, Approval: e.Approval},
	}
	if e.Draft {
		s.Tags = append(s.Tags, "draft")
	} else {
		s.Roles = maps.Clone(e.Roles)
	}
	if m.u.Sandbox != nil {
		s = sandboxSpec(m.u.Sandbox, s)
	}
	if err := m.needs(&s); err != nil {
		return tool.Spec{}, err
	}
	switch {
	case e.Observed:
		s.Coverage, s.Observed = effect.Observed, undo.ObservedRoots(e)
	case len(e.Snapshot) > 0:
		s.Confinement, s.Coverage = tool.Handles, effect.Declared
	}
	if e.Compensate != nil {
		s.Revert, s.UndoVersion = m.undo.Revert, undoVersion
	}
	if !e.Observed && slices.ContainsFunc(e.Snapshot, func(resource string) bool { _, tree := binding.FolderOf(resource); return tree }) {
		s.Verify = verify.Changes
	}
	if e.Verify != nil {
		s.Verify = m.verify
	}
	return s, nil
}

// content returns the trust of results. Those of a draft are not trusted: what it
// says is a guess from names.
func (m mirroredTool) content() *provenance.Content {
	c := &provenance.Content{Trust: provenance.Untrusted}
	if m.entry.Draft || len(m.entry.TrustedFields) == 0 {
		return c
	}
	c.Fields = map[string]provenance.Trust{}
	for _, pointer := range m.entry.TrustedFields {
		c.Fields["/structuredContent"+pointer] = provenance.Trusted
	}
	return c
}

// needs adds the needs of the entry.
func (m mirroredTool) needs(s *tool.Spec) error {
	return needs(s, slices.Concat(m.entry.Needs, m.undo.Accesses()), m.u.Shared.Roots)
}

// execute runs one call.
func (m mirroredTool) execute(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
	held, err := m.undo.SnapshotFolders(ctx, tc, in)
	if err != nil {
		return tool.Result{}, tool.NoEffect(err)
	}
	defer held.Discard()
	s, turn, err := m.u.Begin(ctx, tc, m.entry.Timeout)
	if err != nil {
		return tool.Result{}, err
	}
	if why := m.changed(s); why != "" {
		return tool.Result{}, tool.Blocked(why)
	}
	if turn != nil {
		return m.callInSandbox(ctx, tc, s, turn, in)
	}
	parts, err := m.undo.Before(ctx, tc, in)
	if err != nil {
		return tool.Result{}, tool.NoEffect(err)
	}
	kept, err := m.undo.SnapshotFiles(ctx, tc, in)
	if err != nil {
		return tool.Result{}, err // denied, or without effect so far
	}
	a, err := m.u.Call(ctx, s, m.def.Name, in, upstream.FactsOf(ctx, tc))
	err = errors.Join(err, kept.RecordVersions(ctx), held.RecordChanges(ctx, undo.Concluded(err)))
	m.undo.WarnOfChanges(held)
	if err == nil && !a.Failed && m.entry.Class != effect.Pure {
		err = held.AuthorizeChanges(ctx)
	}
	if err != nil {
		upstream.LeaveProtocolError(ctx, err)
		return tool.Result{}, err
	}
	rawresult.Leave(ctx, a.Object)
	if a.Failed {
		return tool.Result{}, m.responseError(a)
	}
	if m.entry.Compensate != nil {
		if err := m.undo.NoteCompensation(ctx, tc, parts, a); err != nil {
			return tool.Result{}, err
		}
	}
	return rawresult.Result(a.Object, a.Text, nil), nil
}

// responseError returns the error of a server's response.
func (m mirroredTool) responseError(a wire.Result) error {
	err := fmt.Errorf("server %s says that the call failed: %s", m.u.Server.Name, canon.Printable(a.Text, 4<<10))
	if m.entry.ErrorsHaveNoEffect {
		return tool.NoEffect(err)
	}
	return err
}

// changed returns why a tool is not as accepted: its server may have restarted
// since the call was admitted.
func (m mirroredTool) changed(s *upstream.Conn) string {
	identity := m.u.Declared().Identity
	switch {
	case identity != m.identity:
		return fmt.Sprintf("the server calls itself %q now, and was %q when it was accepted", identity, m.identity)
	case !s.Declares(m.def.Key(), m.def.Digest):
		return "its definition was changed since it was accepted"
	}
	return ""
}
