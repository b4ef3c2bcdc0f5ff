package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/mo"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/remit-dev/remit/perm"
)

// configuration holds the settings that a tool runs with.
type configuration struct {
	values []byte // canonical; nil: the tool is not configured
	digest string // digest of values
	why    string // why the tool is not configured; "": Configure was not called
}

// NotConfiguredReason says why calls of the tool are invalid until it is
// configured, or returns "". A tool with settings is not configured before
// Configure.
func (t Tool) NotConfiguredReason() string {
	switch {
	case t.t == nil || t.t.configured.values != nil:
		return ""
	case t.t.configured.why != "":
		return t.t.configured.why
	case t.t.settings == nil:
		return ""
	default:
		return "it has no settings yet"
	}
}

// Configure returns the tool with settings. They are a JSON object that
// Spec.Settings accept, with defaults filled in, and that CheckSettings
// accepts. Package tool/settings makes this object from files of administrators
// and users. Warnings do not prevent the configuration.
func (t Tool) Configure(ctx context.Context, values json.RawMessage) (configured Tool, warnings []string, err error) {
	if t.t == nil {
		return Tool{}, nil, errors.New("the zero Tool has no settings")
	}
	if t.t.settings == nil {
		return Tool{}, nil, fmt.Errorf("tool %q declares no settings", t.Name())
	}
	v, err := canon.Parse(values, canon.Limits{Bytes: 1 << 20, Depth: 64})
	if err == nil {
		v, err = t.t.settings.Complete(v)
	}
	if err == nil {
		err = t.t.checkSettings(v)
	}
	if err != nil {
		return Tool{}, nil, fmt.Errorf("settings of tool %q: %w", t.Name(), err)
	}
	text := v.Canonical()
	if warnings, err = runCheck(ctx, t.t.spec.CheckSettings, text); err != nil {
		return Tool{}, warnings, fmt.Errorf("settings of tool %q: its own check: %w", t.Name(), err)
	}
	c := *t.t
	c.configured = configuration{values: text, digest: string(canon.Sum("remit/settings/v1", text))}
	return Tool{&c}, warnings, nil
}

// withoutSettings returns the tool without settings. why says why the tool has
// none, or why the runtime cannot offer it.
func (t Tool) withoutSettings(why string) Tool {
	if t.t == nil {
		return t
	}
	c := *t.t
	c.configured = configuration{why: why}
	return Tool{&c}
}

// SettingsDigest identifies the settings of the tool; "" if it has none. An
// approval counts only for the settings that it was given under.
func (t Tool) SettingsDigest() string {
	if t.t == nil {
		return ""
	}
	return t.t.configured.digest
}

// Settings returns the settings of the tool, if it is configured. They hold
// references to secrets, never the values.
func (t Tool) Settings() mo.Option[json.RawMessage] {
	if t.t == nil {
		return mo.None[json.RawMessage]()
	}
	values := t.t.configured.values
	return mo.TupleToOption(json.RawMessage(slices.Clone(values)), values != nil)
}

// checkSetting says what is wrong with the value of one setting. The text never
// repeats the value.
func (t Tool) checkSetting(name string, value json.RawMessage) error {
	for _, p := range t.look().Settings {
		if p.Name == name {
			v, err := canon.Parse(value, canon.Limits{Bytes: 1 << 20, Depth: 64})
			if err != nil {
				return err
			}
			return p.checkSetting(v)
		}
	}
	return errors.New("there is no such setting")
}

func (p Param) checkSetting(v canon.Value) error {
	if p.Secret {
		return checkReference(v)
	}
	doc, err := p.schema()
	if err != nil {
		return err
	}
	compiled, err := compile(doc)
	if err != nil {
		return err
	}
	return compiled.ValidateAs("it", "member", v)
}

// checkReference refuses a value that is not the name of a secret. It can be
// the secret itself, which must not be in a settings file.
func checkReference(v canon.Value) error {
	r, err := perm.ParseResource(v.Text())
	if v.Kind() != canon.String || err != nil || r.Kind() != perm.KindSecret || r.String() != v.Text() {
		return errors.New(`it is secret: valid is a reference such as "secret://name", never the secret itself`)
	}
	return nil
}

func (t *tool) checkSettings(v canon.Value) error {
	if err := t.settings.ValidateAs("the settings", "setting", v); err != nil {
		return err
	}
	for _, p := range t.spec.Settings {
		if value, there := v.Get(p.Name); there && p.Secret {
			if err := checkReference(value); err != nil {
				return fmt.Errorf("setting %q: %w", p.Name, err)
			}
		}
	}
	return nil
}

func runCheck(ctx context.Context, check func(context.Context, json.RawMessage) ([]string, error), text []byte) (warnings []string, err error) {
	if check == nil {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			warnings, err = nil, fmt.Errorf("it panicked (%T)", p)
		}
	}()
	if warnings, err = check(ctx, slices.Clone(text)); err == nil {
		err = context.Cause(ctx) // an interrupted check has no result
	}
	return slices.Clone(warnings), err
}

// compileSettings freezes the schema of a tool's settings.
func (t *tool) compileSettings() error {
	s := &t.spec
	switch {
	case s.Settings == nil && s.CheckSettings != nil:
		return errors.New("CheckSettings checks settings, and there are none")
	case s.Settings == nil:
		return nil
	case len(s.Settings) == 0:
		return errors.New("its Settings are there and empty; leave them nil")
	}
	text, err := s.Settings.document(true)
	if err == nil {
		t.settings, err = schema.Compile(text)
	}
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	return nil
}

// meaning returns the settings without the texts for people and without their
// order.
func (all Params) meaning() (json.RawMessage, error) {
	bare := slices.Clone(all)
	slices.SortFunc(bare, func(a, b Param) int { return strings.Compare(a.Name, b.Name) })
	secret := []string{}
	for i := range bare {
		if bare[i].Secret {
			secret = append(secret, bare[i].Name)
		}
		bare[i].Description, bare[i].Examples = "", nil
	}
	text, err := bare.document(true)
	if err != nil {
		return nil, err
	}
	return canon.Marshal(map[string]any{"schema": json.RawMessage(text), "secret": secret})
}
