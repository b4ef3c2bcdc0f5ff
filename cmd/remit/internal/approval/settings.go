package approval

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/atomicfile"
	"github.com/remit-dev/remit/internal/lineage"
)

// Settings say which approvals count for the calls of a journal. Their
// file lies in the state folder, outside every root and invisible in the
// sandbox: no call can change it.
type Settings struct {
	// Unattended accepts approvals from a process without a terminal, and from
	// descendants of the process that made the call.
	Unattended bool `json:"unattended"`
	// AllowedBy is the process that set Unattended by the command, with its
	// parents. It is nil if the file was written by hand.
	AllowedBy  *lineage.Chain `json:"allowed_by,omitempty"`
	Passphrase *verifier      `json:"passphrase,omitempty"` // required for each approval

	node string // the other node that the settings are of; empty: this one
}

var errInvalidPassphrase = errors.New("its passphrase has values that are not valid")

// ReadSettings reads the settings of a state folder. Without a file, a person
// must approve at a terminal.
func ReadSettings(state string) (s Settings, err error) {
	path := filepath.Join(state, SettingsFile)
	damaged := func(why string) (Settings, error) {
		return Settings{}, &cli.Problem{Code: cli.ExitUsage, What: "who may approve cannot be read from " + path, Why: why, Fix: "mend the file or remove it: without it a person approves at a terminal"}
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return damaged(cli.PlainError(err))
	case !info.Mode().IsRegular():
		return damaged("it is not a regular file")
	case info.Mode().Perm()&0o022 != 0:
		return damaged("others can write to it")
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = s.decode(text)
	}
	if err != nil {
		return damaged(err.Error())
	}
	return s, nil
}

// WriteSettings replaces the file in one step. The settings are durable when it
// returns.
func WriteSettings(state string, s Settings) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(state, SettingsFile), append(text, '\n'))
}

// Allow accepts approvals from anywhere. It keeps the chain of the process that
// allows it, if this system reports it.
func (s *Settings) Allow(a *cli.App) {
	s.Unattended, s.AllowedBy = true, nil
	if a.Caller == nil {
		return
	}
	if who := a.Caller(); len(who.Chain.Links) > 0 {
		s.AllowedBy = &who.Chain
	}
}

// Refuse accepts approvals from a terminal only.
func (s *Settings) Refuse() { s.Unattended, s.AllowedBy = false, nil }

// allowed reports whether the settings accept approvals from anywhere for calls
// with these recorded processes. A process of the agent itself cannot allow
// that, also if it did so before the agent asked for the first time.
func (s Settings) allowed(askers []json.RawMessage) bool {
	if !s.Unattended || s.AllowedBy == nil {
		return s.Unattended
	}
	return cli.Caller{Chain: *s.AllowedBy}.Refuses(askers) == nil
}

// Describe returns the settings in one sentence.
func (s Settings) Describe() string {
	text := "approvals are taken from a terminal that no asking process stands above"
	if s.Unattended {
		text = "approvals are taken from anywhere, also from an agent's own processes"
	}
	if s.Passphrase != nil {
		text += ", with the passphrase"
	}
	return text
}
