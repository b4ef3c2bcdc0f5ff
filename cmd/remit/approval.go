package main

import (
	"bufio"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/argon2"
	"golang.org/x/term"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/atomicfile"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/sqlite"
)

// approvalSettings say which approvals count for the calls of a journal. Their
// file lies in the state folder, outside every root and invisible in the
// sandbox: no call can change it.
type approvalSettings struct {
	// Unattended accepts approvals from a process without a terminal, and from
	// descendants of the process that made the call.
	Unattended bool      `json:"unattended"`
	Passphrase *verifier `json:"passphrase,omitempty"` // required for each approval
}

// readApproval reads the settings of a state folder. Without a file, a person
// must approve at a terminal.
func readApproval(state string) (s approvalSettings, err error) {
	path := filepath.Join(state, settingFile)
	damaged := func(why string) (approvalSettings, error) {
		return approvalSettings{}, &cli.Problem{Code: cli.ExitUsage, What: "who may approve cannot be read from " + path, Why: why, Fix: "mend the file or remove it: without it a person approves at a terminal"}
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
		err = canon.Decode(text, &s)
	}
	if err != nil {
		return damaged(err.Error())
	}
	if s.Passphrase != nil && !s.Passphrase.valid() {
		return damaged("its passphrase has values that are not valid")
	}
	return s, nil
}

// writeApproval replaces the file in one step. The settings are durable when it
// returns.
func writeApproval(state string, s approvalSettings) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(state, settingFile), append(text, '\n'))
}

// words describes the settings for people.
func (s approvalSettings) words() string {
	text := "approvals are taken from a terminal that no asking process stands above"
	if s.Unattended {
		text = "approvals are taken from anywhere, also from an agent's own processes"
	}
	if s.Passphrase != nil {
		text += ", with the passphrase"
	}
	return text
}

// verifier checks a passphrase without holding it.
type verifier struct {
	KDF     string `json:"kdf"` // argon2id
	Time    uint32 `json:"time"`
	Memory  uint32 `json:"memory"` // KiB
	Threads uint8  `json:"threads"`
	Salt    []byte `json:"salt"`
	Key     []byte `json:"key"`
}

// The costs of a new verifier are the second recommendation of RFC 9106, for machines with little memory to spare.
const (
	kdf           = "argon2id"
	kdfTime       = 3
	kdfMemory     = 64 << 10
	kdfThreads    = 4
	saltBytes     = 16
	keyBytes      = 32
	minPhrase     = 8
	maxPhrase     = 1 << 10
	mostKDFTime   = 1 << 10
	mostKDFMemory = 4 << 20
	settingFile   = "approval.json"
)

func newVerifier(phrase string) *verifier {
	v := &verifier{KDF: kdf, Time: kdfTime, Memory: kdfMemory, Threads: kdfThreads, Salt: cli.RandomBytes(saltBytes)}
	v.Key = v.derive(phrase)
	return v
}

func (v *verifier) derive(phrase string) []byte {
	return argon2.IDKey([]byte(phrase), v.Salt, v.Time, v.Memory, v.Threads, keyBytes)
}

func (v *verifier) fits(phrase string) bool {
	return subtle.ConstantTimeCompare(v.derive(phrase), v.Key) == 1
}

// valid rejects a damaged verifier, which could accept any passphrase or take
// all memory.
func (v *verifier) valid() bool {
	return v.KDF == kdf && v.Time >= 1 && v.Time <= mostKDFTime && v.Memory >= 8*uint32(v.Threads) && v.Memory <= mostKDFMemory && v.Threads >= 1 &&
		len(v.Salt) >= saltBytes && len(v.Key) == keyBytes
}

// choosePassphrase asks for a new passphrase, twice.
func choosePassphrase(a *cli.App, s *approvalSettings) error {
	phrase, err := readPhrase(a, "new passphrase for approvals (not shown): ")
	if err != nil {
		return err
	}
	if n := len(phrase); n < minPhrase || n > maxPhrase {
		return cli.UsageProblem(fmt.Sprintf("the passphrase has %d bytes; valid are %d to %d", n, minPhrase, maxPhrase))
	}
	again, err := readPhrase(a, "once more: ")
	if err != nil {
		return err
	}
	if again != phrase {
		return cli.UsageProblem("the two passphrases differ")
	}
	s.Passphrase = newVerifier(phrase)
	return nil
}

// askPassphrase asks at the terminal for the passphrase that approvals need.
func askPassphrase(a *cli.App, v *verifier) error {
	phrase, err := readPhrase(a, "passphrase for approvals (not shown): ")
	if err != nil {
		return err
	}
	if len(phrase) > maxPhrase || !v.fits(phrase) {
		return &cli.Problem{Code: cli.ExitDenied, What: "nothing was approved", Why: "the passphrase is not the one that was set"}
	}
	return nil
}

// readPhrase reads a line from the terminal without showing it.
func readPhrase(a *cli.App, ask string) (string, error) {
	refused := func(why error) error {
		return &cli.Problem{Code: cli.ExitDenied, What: "approvals need a passphrase, which is typed at a terminal", Why: cli.PlainError(why), Fix: "run it at a terminal"}
	}
	if a.OpenTTY == nil {
		return "", refused(errors.New("there is no terminal"))
	}
	tty, err := a.OpenTTY()
	if err != nil {
		return "", refused(err)
	}
	defer func() { _ = tty.Close() }()
	defer a.Progress.Hold()()
	if f, ok := tty.(*os.File); ok {
		text, err := unseen(f, ask)
		if err != nil {
			return "", refused(err)
		}
		return text, nil
	}
	_, _ = fmt.Fprint(tty, ask)
	text, err := bufio.NewReader(io.LimitReader(tty, maxPhrase+2)).ReadString('\n')
	if err != nil {
		return "", refused(err)
	}
	return strings.TrimRight(text, "\r\n"), nil
}

// unseen reads a line without showing it. It turns the echo off before the
// prompt, so that early typing is not shown either.
func unseen(tty *os.File, ask string) (text string, err error) {
	was, err := term.MakeRaw(int(tty.Fd()))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, term.Restore(int(tty.Fd()), was)) }()
	return term.NewTerminal(byByte{tty}, "").ReadPassword(ask)
}

// byByte reads one byte at a time, so that it takes nothing of the next answer.
type byByte struct{ *os.File }

func (b byByte) Read(p []byte) (int, error) { return b.File.Read(p[:min(len(p), 1)]) }

// pendingCalls returns the pending calls of a journal, none if there is no journal.
func pendingCalls(ctx context.Context, a *cli.App, p *state.Workspace) (calls []*revert.Call, err error) {
	if !sqlite.Exists(p.StateDir) {
		return nil, nil
	}
	j, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	all, err := waitsIn(ctx, j)
	for _, w := range all {
		calls = append(calls, w.call)
	}
	return calls, err
}

func approvalCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var asJSON bool
	cmd := &cobra.Command{
		Use: "approval", Short: "Show whose approvals are taken, or change that",
		Long: "Shows how remit approve makes sure that a person approves. By default it wants a terminal that it reads from, and refuses to\n" +
			"run below the process that asked or what started that one. What the subcommands change is kept in the state folder,\n" +
			"where no call can reach it. What this stops, and what it does not, is in docs/explanation/threat-model.md.",
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := p.Find(a); err != nil {
				return err
			}
			s, err := readApproval(p.StateDir)
			if err != nil {
				return err
			}
			if err := tellSettings(a, s, asJSON); err != nil || asJSON {
				return err
			}
			_, err = fmt.Fprintln(a.Out, "kept in "+cli.Printable(filepath.Join(p.StateDir, settingFile)))
			return err
		},
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	cmd.AddCommand(
		settingCommand(a, "allow-unattended", "Take approvals from a process without a terminal, and from below the one that asked", func(s *approvalSettings) error {
			s.Unattended = true
			return nil
		}),
		settingCommand(a, "refuse-unattended", "Take approvals from a terminal only: the default", func(s *approvalSettings) error {
			s.Unattended = false
			return nil
		}),
		settingCommand(a, "set-passphrase", "Want a passphrase with each approval", func(s *approvalSettings) error { return choosePassphrase(a, s) }),
		settingCommand(a, "remove-passphrase", "Want no passphrase", func(s *approvalSettings) error {
			s.Passphrase = nil
			return nil
		}),
	)
	return cmd
}

// settingCommand returns a command that changes the settings. It requires what
// an approval requires, unless it only restricts.
func settingCommand(a *cli.App, use, short string, change func(*approvalSettings) error) *cobra.Command {
	var p state.Workspace
	var asJSON bool
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.Find(a); err != nil {
				return err
			}
			s, err := readApproval(p.StateDir)
			if err != nil {
				return err
			}
			if use != "refuse-unattended" {
				asked, err := pendingCalls(cmd.Context(), a, &p)
				if err != nil {
					return err
				}
				if err := checkApprover(a, &p, asked...); err != nil {
					return err
				}
			}
			if err := change(&s); err != nil {
				return err
			}
			if err := writeApproval(p.StateDir, s); err != nil {
				return fmt.Errorf("write %s: %w", settingFile, err)
			}
			return tellSettings(a, s, asJSON)
		},
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// settingRecord is the --json output of the settings commands.
type settingRecord struct {
	Unattended bool `json:"unattended"`
	Passphrase bool `json:"passphrase"` // each approval needs the passphrase
}

func tellSettings(a *cli.App, s approvalSettings, asJSON bool) error {
	if asJSON {
		a.WriteJSON(settingRecord{s.Unattended, s.Passphrase != nil})
		return nil
	}
	_, err := fmt.Fprintln(a.Out, s.words())
	return err
}
