package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

func (a *app) toolsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "tools", Short: "List the tools, what they may touch and whether it can be taken back",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return a.listTools(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object a line, one for each tool")
	return cmd
}

// toolRecord is a declaration as it is listed.
type toolRecord struct {
	Name        string                `json:"name"`
	Description string                `json:"description"`
	Version     string                `json:"version,omitempty"`
	EffectClass revert.EffectClass    `json:"effect_class"`
	Declared    bool                  `json:"declared"`
	Confinement tool.Confinement      `json:"confinement"`
	CanVerify   bool                  `json:"can_verify"`
	CanRevert   bool                  `json:"can_revert"`
	Needs       []perm.ResourceAccess `json:"needs"`
	Input       json.RawMessage       `json:"input"`
	Digest      string                `json:"digest"`
}

func (a *app) listTools(asJSON bool) error {
	tools, err := tool.NewRegistry(a.builtin()...)
	if err != nil {
		return err
	}
	for _, name := range tools.Names() {
		t, _ := tools.Get(name) // Names lists what is there
		s := t.Spec()
		r := toolRecord{
			Name: s.Name, Description: s.Description, Version: s.Version, EffectClass: t.Class(), Declared: s.EffectClass != "",
			Confinement: s.Confinement, CanVerify: t.CanVerify(), CanRevert: t.CanRevert(), Needs: listed(s.Needs),
			Input: t.InputSchema(), Digest: t.Digest(),
		}
		if asJSON {
			newJSON(a.out).write(r)
		} else {
			a.paint().tool(a.out, r)
		}
	}
	return nil
}

func (p paint) tool(w io.Writer, r toolRecord) {
	class := string(r.EffectClass)
	if !r.Declared {
		class += " (undeclared)"
	}
	words := []string{class, confinementWords(r.Confinement)}
	if r.CanVerify {
		words = append(words, "verifies")
	}
	if r.CanRevert && r.EffectClass != revert.Pure {
		words = append(words, "can be taken back")
	}
	_, _ = fmt.Fprintf(w, "%s  %s\n    %s\n", p.bold(fmt.Sprintf("%-12s", r.Name)), strings.Join(words, ", "), printable(r.Description))
	for _, n := range r.Needs {
		_, _ = fmt.Fprintf(w, "    %s %s\n", p.faint("needs"), printable(n.String()))
	}
	_, _ = fmt.Fprintf(w, "    %s\n", p.faint(r.Digest))
}

func confinementWords(c tool.Confinement) string {
	if c == tool.Trusted {
		return "not confined"
	}
	return "confined by " + string(c)
}
