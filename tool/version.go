package tool

import (
	"fmt"
	"strings"

	"golang.org/x/mod/semver"
)

// semanticVersion is a version as package semver writes it, "" for what is none. The
// v in front may be left out; nothing else may.
func semanticVersion(version string) string {
	v := "v" + strings.TrimPrefix(version, "v")
	core, _, _ := strings.Cut(strings.Split(v, "+")[0], "-")
	if !semver.IsValid(v) || strings.Count(core, ".") != 2 {
		return ""
	}
	return v
}

func compareVersions(a, b string) int { return semver.Compare(semanticVersion(a), semanticVersion(b)) }

// versions lists the versions of a name for a message.
func versions(all []Tool) string {
	var list []string
	for _, t := range all {
		if v := t.look().Version; v != "" {
			list = append(list, v)
		}
	}
	if len(list) == 0 {
		return "any: the tool has no version"
	}
	return strings.Join(list, ", ")
}

// QualifiedName is how a call asks for exactly this tool beside others of its name.
func (t Tool) QualifiedName() string {
	if s := t.look(); s.Version != "" {
		return s.Name + "@" + s.Version
	}
	return t.Name()
}

// ModelDescription is the description that a model is given: what the tool does, and that it
// should use another one where this one is deprecated.
func (t Tool) ModelDescription() string {
	s := t.look()
	if s.Deprecated == "" {
		return s.Description
	}
	return strings.TrimSpace(s.Description + " Deprecated: " + sentence(s.Deprecated))
}

// notice is what a call's outcome says of a deprecated tool, once.
func (t Tool) notice() string {
	s := t.look()
	if s.Deprecated == "" {
		return ""
	}
	return fmt.Sprintf("\nTool %s is deprecated: %s", t.QualifiedName(), sentence(s.Deprecated))
}
