package approval

import (
	"bufio"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/term"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// verifier checks a passphrase without holding it.
type verifier struct {
	KDF     string `json:"kdf"` // argon2id
	Time    uint32 `json:"time"`
	Memory  uint32 `json:"memory"` // KiB
	Threads uint8  `json:"threads"`
	Salt    []byte `json:"salt"`
	Key     []byte `json:"key"`
}

// Costs and limits of a passphrase. The costs of a new verifier are the second
// recommendation of RFC 9106, for machines with little memory.
const (
	kdf          = "argon2id"
	kdfTime      = 3
	kdfMemory    = 64 << 10
	kdfThreads   = 4
	saltBytes    = 16
	keyBytes     = 32
	minPhrase    = 8
	MaxPhrase    = 1 << 10
	maxKDFTime   = 1 << 10
	maxKDFMemory = 4 << 20
	SettingsFile = "approval.json"
)

// NewVerifier returns a verifier of a passphrase with a new salt.
func NewVerifier(phrase string) *verifier {
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

// Valid rejects a damaged verifier, which could accept any passphrase or take
// all memory.
func (v *verifier) Valid() bool {
	return v.KDF == kdf && v.Time >= 1 && v.Time <= maxKDFTime && v.Memory >= 8*uint32(v.Threads) && v.Memory <= maxKDFMemory && v.Threads >= 1 &&
		len(v.Salt) >= saltBytes && len(v.Key) == keyBytes
}

// ChoosePassphrase asks for a new passphrase, twice.
func ChoosePassphrase(a *cli.App, s *Settings) error {
	phrase, err := readPhrase(a, "new passphrase for approvals (not shown): ")
	if err != nil {
		return err
	}
	if n := len(phrase); n < minPhrase || n > MaxPhrase {
		return cli.UsageProblem(fmt.Sprintf("the passphrase has %d bytes; valid are %d to %d", n, minPhrase, MaxPhrase))
	}
	again, err := readPhrase(a, "once more: ")
	if err != nil {
		return err
	}
	if again != phrase {
		return cli.UsageProblem("the two passphrases differ")
	}
	s.Passphrase = NewVerifier(phrase)
	return nil
}

// askPassphrase asks at the terminal for the passphrase that approvals need.
func askPassphrase(a *cli.App, v *verifier) error {
	phrase, err := readPhrase(a, "passphrase for approvals (not shown): ")
	if err != nil {
		return err
	}
	if len(phrase) > MaxPhrase || !v.fits(phrase) {
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
		text, err := readHidden(f, ask)
		if err != nil {
			return "", refused(err)
		}
		return text, nil
	}
	_, _ = fmt.Fprint(tty, ask)
	text, err := bufio.NewReader(io.LimitReader(tty, MaxPhrase+2)).ReadString('\n')
	if err != nil {
		return "", refused(err)
	}
	return strings.TrimRight(text, "\r\n"), nil
}

// readHidden reads a line without showing it. It turns the echo off before the
// prompt, so that early typing is not shown either.
func readHidden(tty *os.File, ask string) (text string, err error) {
	was, err := term.MakeRaw(int(tty.Fd()))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, term.Restore(int(tty.Fd()), was)) }()
	return term.NewTerminal(byteReader{tty}, "").ReadPassword(ask)
}

// byteReader reads one byte at a time, so that it takes nothing of the next answer.
type byteReader struct{ *os.File }

// Read reads at most one byte.
func (b byteReader) Read(p []byte) (int, error) { return b.File.Read(p[:min(len(p), 1)]) }
