package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/samber/mo"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/verify"
)

// Tool is a frozen tool. It is immutable and safe for concurrent use, and may
// be copied. Every part of the runtime refuses the zero Tool. Two tools are ==
// if they come from the same FromSpec or Graded; the same Digest means the same
// declaration.
type Tool struct{ t *tool }

type tool struct {
	spec   Spec
	input  *schema.Schema
	output *schema.Schema // nil: not checked

	settings   *schema.Schema // nil: no settings
	configured configuration
	bound      perm.Set // needs with each parameter replaced by a wildcard
	needs      []need
	digest     string
	grade      *provenance.GradeRecord // nil: ungraded
}

// need is one declared access, parsed.
type need struct {
	access  perm.ResourceAccess
	pattern perm.Pattern
	params  []string
}

// nameOK is stricter than every provider's rule, so that no mapping of names
// can make two tools share one.
var nameOK = regexp.MustCompile(`^[a-z][a-z0-9]*(_{1,2}[a-z0-9]+)*$`)

// FromSpec validates a literal, copies it, compiles its schemas and freezes it.
func FromSpec(s Spec) (Tool, error) {
	if err := checkSpec(s); err != nil {
		return Tool{}, fmt.Errorf("tool %q: %w", s.Name, err)
	}
	t := &tool{spec: cloneSpec(s), input: schema.FreeForm()}
	var err error
	if s.Params != nil {
		if t.spec.Input, err = s.Params.schema(); err != nil {
			return Tool{}, fmt.Errorf("tool %q: %w", s.Name, err)
		}
		if t.spec.Roles, err = s.Params.roles(s.Roles); err != nil {
			return Tool{}, fmt.Errorf("tool %q: %w", s.Name, err)
		}
		t.spec.Params = nil
	}
	if t.spec.Input != nil {
		if t.input, err = schema.Compile(t.spec.Input); err != nil {
			return Tool{}, fmt.Errorf("tool %q: input schema: %w", s.Name, err)
		}
	}
	if s.Output != nil {
		if t.output, err = schema.Compile(s.Output); err != nil {
			return Tool{}, fmt.Errorf("tool %q: output schema: %w", s.Name, err)
		}
	}
	if err := t.compileSettings(); err != nil {
		return Tool{}, fmt.Errorf("tool %q: %w", s.Name, err)
	}
	if err := t.parseNeeds(); err != nil {
		return Tool{}, fmt.Errorf("tool %q: %w", s.Name, err)
	}
	if err := t.checkPure(); err != nil {
		return Tool{}, fmt.Errorf("tool %q: %w", s.Name, err)
	}
	if err := t.checkCounters(); err != nil {
		return Tool{}, fmt.Errorf("tool %q: %w", s.Name, err)
	}
	if err := t.checkPlaces(); err != nil {
		return Tool{}, fmt.Errorf("tool %q: %w", s.Name, err)
	}
	if t.digest, err = t.declarationDigest(); err != nil {
		return Tool{}, fmt.Errorf("tool %q: %w", s.Name, err)
	}
	return Tool{t}, nil
}

func checkSpec(s Spec) error {
	switch {
	case len(s.Name) > 64 || !nameOK.MatchString(s.Name):
		return errors.New("a name is lower-case letters, digits and single or double underscores between them, begins with a letter and has at most 64 characters")
	case s.Execute == nil:
		return errors.New("Execute is missing")
	case s.Params != nil && s.Input != nil:
		return errors.New("Params and Input both say what the arguments are; leave one out")
	case s.EffectClass != "" && !s.EffectClass.Valid():
		return fmt.Errorf("unknown effect class %q; valid are %v", s.EffectClass, effect.Classes())
	case !slices.Contains([]Confinement{"", Trusted, Handles, Sandbox}, s.Confinement):
		return fmt.Errorf("unknown confinement %q; valid are trusted, handles, sandbox", s.Confinement)
	case !slices.Contains([]Destination{"", NoDestination, Configured, ThirdParty, ModelChosen}, s.Destination):
		return fmt.Errorf("unknown destination %q; valid are none, configured, third_party, model_chosen", s.Destination)
	case s.Coverage != "" && !s.Coverage.Valid():
		return fmt.Errorf("unknown coverage %q; valid are confined, observed, declared", s.Coverage)
	case s.Coverage == effect.Confined && s.Confinement != Handles && s.Confinement != Sandbox:
		return errors.New("coverage confined: nothing confines the tool; leave the coverage out")
	case s.Coverage != effect.Observed && len(s.Observed) > 0:
		return errors.New("observed roots: the coverage is not observed; set it, or leave the roots out")
	case s.Coverage == effect.Observed && s.EffectClass == effect.Reversible:
		return errors.New("coverage observed: what a call does elsewhere is unknown, so it is not reversible; declare it pivot or pure")
	case s.Confinement == Sandbox && !s.sandboxed:
		return errors.New("no Go function runs in the sandbox; only remit's own tools that start programs do")
	case s.EffectClass == effect.Reversible && s.Revert == nil && s.Confinement != Handles && s.Confinement != Sandbox:
		return errors.New("a reversible tool either acts only through handles, which tool.Confined(tool.Handles) declares, or has a Revert")
	case s.EffectClass == effect.Compensable && s.Revert == nil && s.Confinement != Handles:
		return errors.New("a compensable tool has a Revert, or acts only through handles, which tool.Confined(tool.Handles) declares: otherwise nothing would be reverted")
	case s.holds != "" && s.EffectClass == effect.Pure:
		return errors.New("a tool that holds a state is not pure, since each call may change that; tool.Effect(effect.Reversible) with tool.Confined(tool.Handles) is what touches nothing else")
	case s.OutputContent != nil && s.OutputContent.Check() != nil:
		return fmt.Errorf("field OutputContent: %w", s.OutputContent.Check())
	case s.Roles.Check() != nil:
		return fmt.Errorf("field Roles: %w", s.Roles.Check())
	case s.ClassOf != nil && s.EffectClass == "":
		return errors.New("ClassOf makes single calls milder than EffectClass, which is missing")
	case s.MinProviderTrust < 0 || s.MinProviderTrust > 1000:
		return fmt.Errorf("a confidence of %d; valid are 0 to 1000, in thousandths", s.MinProviderTrust)
	case len(s.Usage) > maxUsage:
		return fmt.Errorf("its Usage has %d bytes; at most %d go into a system prompt", len(s.Usage), maxUsage)
	case s.Hints.Risk != "" && !s.Hints.Risk.Valid():
		return fmt.Errorf("unknown risk %q; valid are low, medium, high", s.Hints.Risk)
	case s.Hints.Timeout < 0:
		return errors.New("a negative timeout")
	}
	return nil
}

// checkPure refuses a tool that declares no effect but has needs with one.
func (t *tool) checkPure() error {
	for _, n := range t.needs {
		if t.spec.EffectClass == effect.Pure && n.access.Action.Changes() {
			return fmt.Errorf("effect class %q: need %q changes a resource; leave the need out, or declare what undo can do, such as tool.Effect(effect.Reversible) with tool.Confined(tool.Handles)",
				effect.Pure, n.access.String())
		}
	}
	return nil
}

func cloneSpec(s Spec) Spec {
	s.Tags = append([]string{}, s.Tags...)
	s.Input, s.Output = slices.Clone(s.Input), slices.Clone(s.Output)
	s.Needs, s.Observed = slices.Clone(s.Needs), slices.Clone(s.Observed)
	s.Capabilities = slices.Clone(s.Capabilities)
	s.Counters = maps.Clone(s.Counters)
	if s.OutputContent != nil {
		content := *s.OutputContent
		content.Fields = maps.Clone(content.Fields)
		s.OutputContent = &content
	}
	s.Roles = maps.Clone(s.Roles)
	s.Hints.Sensitive = slices.Clone(s.Hints.Sensitive)
	s.Settings = slices.Clone(s.Settings)
	s.Display.Names, s.Display.Descriptions = maps.Clone(s.Display.Names), maps.Clone(s.Display.Descriptions)
	s.Display.Surfaces = slices.Clone(s.Display.Surfaces)
	s.Provenance = s.Provenance.OrUnknown()
	if s.Confinement == "" {
		s.Confinement = Trusted
	}
	if s.Destination == "" {
		s.Destination = ModelChosen
	}
	return s
}

// IsZero reports whether t is the zero Tool, which every part of remit refuses.
func (t Tool) IsZero() bool { return t.t == nil }

// Name returns the tool's name, "" for the zero Tool.
func (t Tool) Name() string { return t.look().Name }

// Digest identifies the declaration. Any change of it, also of the description,
// changes the digest. It does not cover code.
func (t Tool) Digest() string {
	if t.t == nil {
		return ""
	}
	return t.t.digest
}

// Spec returns a copy of the literal, with defaults filled in. Changing the
// copy does not change the tool; use FromSpec to make a new one.
func (t Tool) Spec() Spec {
	if t.t == nil {
		return Spec{}
	}
	return cloneSpec(t.t.spec)
}

// look returns the literal itself, for readers only. Copying it for every query
// would double the cost of the query.
func (t Tool) look() *Spec {
	if t.t == nil {
		return &Spec{}
	}
	return &t.t.spec
}

// InputSchema returns the canonical JSON Schema of the input.
func (t Tool) InputSchema() []byte {
	if t.t == nil {
		return nil
	}
	return t.t.input.Canonical()
}

// Class returns the effect class that counts: pivot if none is declared.
func (t Tool) Class() effect.Class { return t.look().EffectClass.OrPivot() }

// Coverage returns how much of the effect of a call of the tool is known.
func (t Tool) Coverage() effect.Coverage {
	s := t.look()
	switch {
	case s.Coverage != "":
		return s.Coverage
	case s.Confinement == Handles, s.Confinement == Sandbox:
		return effect.Confined
	default:
		return effect.Declared
	}
}

// Verifier returns the tool's Verify, if it declares one.
func (t Tool) Verifier() mo.Option[verify.Verifier] {
	v := t.look().Verify
	return mo.TupleToOption(v, v != nil)
}

// CanVerify reports whether the tool declares a Verify. For a composed tool it
// reports whether each part that has an effect does.
func (t Tool) CanVerify() bool {
	unseen := func(part Tool) bool { return part.Class() != effect.Pure && !part.CanVerify() }
	return t.Verifier().IsPresent() && !slices.ContainsFunc(t.look().parts, unseen)
}

// CanRevert reports whether calls can be reverted: by the tool's own Revert, or
// because the tool is pure, or reversible through handles. For a composed tool
// it reports whether that is so for each part.
func (t Tool) CanRevert() bool {
	s := t.look()
	if s.parts != nil {
		return !slices.ContainsFunc(s.parts, func(part Tool) bool { return !part.CanRevert() })
	}
	return s.Revert != nil || s.EffectClass == effect.Pure || s.EffectClass == effect.Reversible || s.EffectClass == effect.Compensable
}

// RequiredAccesses returns what a session needs for any call of the tool: its
// needs, and the call itself.
func (t Tool) RequiredAccesses() []perm.ResourceAccess {
	if t.t == nil {
		return nil
	}
	return append(t.t.bound.Accesses(), toolaccess.Call(t.Name()))
}

// Modify returns another tool, made from a changed copy of the literal. It
// keeps the grade if the declaration is the same.
func (t Tool) Modify(change func(*Spec)) (Tool, error) {
	if t.t == nil {
		return Tool{}, errors.New("the zero Tool cannot be changed")
	}
	s := t.Spec()
	change(&s)
	made, err := FromSpec(s)
	if err == nil && made.t.digest == t.t.digest {
		made.t.grade = t.t.grade
	}
	return made, err
}

// Facts returns what a policy sees of the tool.
func (t Tool) Facts() perm.ToolFacts {
	if t.t == nil {
		return perm.ToolFacts{Grade: string(provenance.Ungraded)}
	}
	s := &t.t.spec
	return perm.ToolFacts{
		Name: s.Name, Version: s.Version, Tags: slices.Clone(s.Tags), Digest: t.t.digest,
		Provenance: string(s.Provenance.Kind), CanVerify: t.CanVerify(), CanRevert: t.CanRevert(),
		Confinement: string(s.Confinement), Coverage: string(t.Coverage()), Destination: string(s.Destination), Grade: string(t.Grade()),
		Confidence: s.MinProviderTrust, Idempotent: s.Hints.Idempotent, Risk: s.Hints.Risk, Approval: s.Hints.Approval,
	}
}

// declaration is what the digest covers.
type declaration struct {
	Name        string                `json:"name"`
	Description string                `json:"description"`
	Usage       string                `json:"usage,omitempty"`
	Version     string                `json:"version"`
	Tags        []string              `json:"tags"`
	Input       rawJSON               `json:"input"`
	Output      rawJSON               `json:"output"`
	Needs       []perm.ResourceAccess `json:"needs"`
	Computed    bool                  `json:"computed_access"`
	Classes     bool                  `json:"computed_class,omitempty"`
	Bounds      bool                  `json:"computed_bound,omitempty"`
	Holds       string                `json:"holds,omitempty"`
	EffectClass string                `json:"effect_class"`
	Confinement Confinement           `json:"confinement"`
	Destination Destination           `json:"destination"`
	Coverage    effect.Coverage       `json:"coverage,omitempty"`
	Observed    []string              `json:"observed,omitempty"`
	Verify      bool                  `json:"verify"`
	Revert      bool                  `json:"revert"`
	UndoVersion string                `json:"undo_version"`
	Provenance  any                   `json:"provenance"`
	Idempotent  bool                  `json:"idempotent"`
	Risk        perm.Risk             `json:"risk,omitempty"`
	Approval    bool                  `json:"approval,omitempty"`
	Timeout     string                `json:"timeout"`
	Sensitive   []string              `json:"sensitive"`
	Counters    map[string]string     `json:"counters,omitempty"`
	Deprecated  string                `json:"deprecated,omitempty"`
	Concurrent  bool                  `json:"concurrent,omitempty"`
	Capable     []string              `json:"capabilities,omitempty"`
	Confidence  int                   `json:"confidence,omitempty"`
	Settings    json.RawMessage       `json:"settings,omitempty"`
	Checks      bool                  `json:"checks_settings,omitempty"`
	Content     *provenance.Content   `json:"output_content,omitempty"`
	Roles       provenance.Roles      `json:"roles,omitempty"`
	Withheld    string                `json:"withheld,omitempty"`
}

func (t *tool) declarationDigest() (string, error) {
	s := t.spec
	d := declaration{
		Name: s.Name, Description: s.Description, Usage: s.Usage, Version: s.Version, Tags: s.Tags,
		Input: t.input.Canonical(), Needs: append([]perm.ResourceAccess{}, s.Needs...), Computed: s.AccessFor != nil, Classes: s.ClassOf != nil, Bounds: s.Bound != nil, Holds: s.holds,
		EffectClass: string(s.EffectClass), Confinement: s.Confinement, Destination: s.Destination, Coverage: s.Coverage, Observed: s.Observed,
		Verify: s.Verify != nil, Revert: s.Revert != nil, UndoVersion: s.UndoVersion,
		Idempotent: s.Hints.Idempotent, Risk: s.Hints.Risk, Approval: s.Hints.Approval, Timeout: s.Hints.Timeout.String(), Sensitive: append([]string{}, s.Hints.Sensitive...), Counters: s.Counters, Deprecated: s.Deprecated,
		Concurrent: s.Hints.Concurrent, Capable: s.Capabilities, Confidence: s.MinProviderTrust, Content: s.OutputContent, Roles: s.Roles, Withheld: s.DisabledReason,
	}
	from := s.Provenance
	from.Digest = ""
	d.Provenance = from
	if t.output != nil {
		d.Output = t.output.Canonical()
	}
	if t.settings != nil {
		meaning, err := s.Settings.meaning()
		if err != nil {
			return "", fmt.Errorf("declaration: %w", err)
		}
		d.Settings, d.Checks = meaning, s.CheckSettings != nil
	}
	raw, err := canon.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("declaration: %w", err)
	}
	return string(canon.Sum("remit/tool/v1", raw)), nil
}

// rawJSON marshals as itself, and as null if empty.
type rawJSON []byte

// MarshalJSON returns the bytes.
func (r rawJSON) MarshalJSON() ([]byte, error) {
	if r == nil {
		return []byte("null"), nil
	}
	return r, nil
}
