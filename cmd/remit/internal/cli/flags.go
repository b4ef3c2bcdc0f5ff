package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/revert"
)

// FolderFlag is the flag of a folder. It rejects the empty value of an unset
// variable, which would name another folder.
type FolderFlag struct{ To *string }

// String returns the folder.
func (f FolderFlag) String() string {
	if f.To == nil {
		return ""
	}
	return *f.To
}

// Type returns the type name for the help.
func (FolderFlag) Type() string { return "string" }

// Set sets the folder. It returns an error for the empty text, and for text that
// is not UTF-8.
func (f FolderFlag) Set(dir string) error {
	if dir == "" {
		return errors.New("the folder has no name; is a variable not set?")
	}
	if !utf8.ValidString(dir) {
		return errors.New("the name is not valid UTF-8, and records cannot hold it; use a folder with another name")
	}
	*f.To = dir
	return nil
}

// AddRetentionFlags adds the flags of a retention. When is the start of their
// help text.
func AddRetentionFlags(cmd *cobra.Command, keep *revert.Retention, when string) {
	cmd.Flags().Var((*ageFlag)(&keep.MaxAge), "keep", when+"keep what ended less than `TIME` ago, such as 30d or 12h")
	cmd.Flags().Var((*numberFlag)(&keep.KeepLast), "keep-last", when+"always keep the newest `N` ended transactions")
}

// AddAgeFlag adds a flag of an age.
func AddAgeFlag(cmd *cobra.Command, to *time.Duration, name, usage string) {
	cmd.Flags().Var((*ageFlag)(to), name, usage)
	cmd.Flags().Lookup(name).DefValue = "" // the usage says what zero means
}

// ParseSince parses a time in the past: an age before now, or a date with or
// without a time of day, in the local zone if the text names none.
func ParseSince(text string, now time.Time) (time.Time, error) {
	var age ageFlag
	if age.Set(text) == nil {
		return now.Add(-time.Duration(age)), nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02T15:04:05", time.DateTime, time.RFC3339} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, errors.New("must be an age such as 2h or 3d, a date such as 2026-01-31, or a date and a time such as 2026-01-31T15:04")
}

// ageFlag is the flag of an age: a Go duration, or a number of days such as
// 30d.
type ageFlag time.Duration

// String returns the age.
func (f *ageFlag) String() string {
	d := time.Duration(*f)
	if d%(24*time.Hour) == 0 {
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	}
	return d.String()
}

// Type returns the type name for the help.
func (*ageFlag) Type() string { return "time" }

// Set parses an age.
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

// numberFlag is the flag of a number that is not negative.
type numberFlag int

// String returns the number.
func (f *numberFlag) String() string { return strconv.Itoa(int(*f)) }

// Type returns the type name for the help.
func (*numberFlag) Type() string { return "number" }

// Set parses a number.
func (f *numberFlag) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return errors.New("not a number; write 0 or more")
	}
	*f = numberFlag(n)
	return nil
}
