package tool

import (
	"strings"

	"golang.org/x/mod/semver"

	"github.com/remit-dev/remit/internal/canon"
)

// semanticVersion returns a version in the form of package semver, or "" if it
// is not one. Only the leading v may be missing.
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

// QualifiedName returns the name with which a call selects exactly this version
// of the tool.
func (t Tool) QualifiedName() string {
	if s := t.look(); s.Version != "" {
		return s.Name + "@" + s.Version
	}
	return t.Name()
}

// ModelDescription returns the description for models: what the tool does, and
// what to use instead if it is deprecated.
func (t Tool) ModelDescription() string {
	s := t.look()
	if s.Deprecated == "" {
		return s.Description
	}
	return strings.TrimSpace(s.Description + " Deprecated: " + canon.Sentence(s.Deprecated))
}
