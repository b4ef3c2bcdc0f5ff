package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/revert"
)

// FolderFlag is a flag that names a folder. An empty one is refused: it is what
// an unset variable leaves, and would be another folder than the one meant.
type FolderFlag struct{ To *string }

// String is the folder.
func (f FolderFlag) String() string {
	if f.To == nil {
		return ""
	}
	return *f.To
}

// Type names what the flag takes.
func (FolderFlag) Type() string { return "string" }

// Set takes the folder.
func (f FolderFlag) Set(dir string) error {
	if dir == "" {
		return errors.New("the folder has no name; is a variable not set?")
	}
	*f.To = dir
	return nil
}

// AddRetentionFlags are the flags of a retention; when says when they count.
func AddRetentionFlags(cmd *cobra.Command, keep *revert.Retention, when string) {
	cmd.Flags().Var((*ageFlag)(&keep.MaxAge), "keep", when+"keep what ended less than this `TIME` ago, such as 30d or 12h")
	cmd.Flags().Var((*numberFlag)(&keep.KeepLast), "keep-last", when+"keep the newest `N` that ended, however old")
}

// ageFlag is a time as Go writes it, or a number of days.
type ageFlag time.Duration

// String is the time.
func (f *ageFlag) String() string {
	d := time.Duration(*f)
	if d%(24*time.Hour) == 0 {
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	}
	return d.String()
}

// Type names what the flag takes.
func (*ageFlag) Type() string { return "time" }

// Set takes the time.
func (f *ageFlag) Set(text string) error {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err == nil {
			*f = ageFlag(time.Duration(n) * 24 * time.Hour)
			return nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return errors.New("not a time; write 30d, 12h or 0h")
	}
	*f = ageFlag(d)
	return nil
}

// numberFlag is a number that is not negative.
type numberFlag int

// String is the number.
func (f *numberFlag) String() string { return strconv.Itoa(int(*f)) }

// Type names what the flag takes.
func (*numberFlag) Type() string { return "number" }

// Set takes the number.
func (f *numberFlag) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return errors.New("not a number; write 0 or more")
	}
	*f = numberFlag(n)
	return nil
}
