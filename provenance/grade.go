package provenance

import (
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/canon"
)

// Grade is what the fault kit, revert/reverttest, found out about reverting the
// calls of a tool. It belongs to one declaration, which its digest identifies.
type Grade string

// The grades, worst first.
const (
	Ungraded      Grade = "ungraded"       // the kit has not run on this declaration
	NotUndoable   Grade = "not_undoable"   // an effect can be lost, doubled, or reported as reverted when it is not
	Compensable   Grade = "compensable"    // reverted if nothing fails; traces remain, or some faults need a person
	CrashUndoable Grade = "crash_undoable" // reverted exactly, after a fault at any point
	ReadOnly      Grade = "read_only"      // no call changed anything
)

// grades lists all grades, worst first.
func grades() []Grade { return []Grade{Ungraded, NotUndoable, Compensable, CrashUndoable, ReadOnly} }

// AtLeast reports whether g is as good as the other grade. An unknown g counts
// as Ungraded.
func (g Grade) AtLeast(other Grade) bool {
	return max(slices.Index(grades(), g), 0) >= slices.Index(grades(), other)
}

// GradeBuild identifies the program that gave a grade, from its build
// information.
type GradeBuild struct {
	Module   string `json:"module"`             // main module of the program
	Version  string `json:"version"`            // version of that module
	Revision string `json:"revision,omitempty"` // source revision, if the build knows it
	Modified bool   `json:"modified,omitempty"` // the source was changed after that revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// GradeRecord is the stored form of one grade.
type GradeRecord struct {
	Tool    string     `json:"tool"`
	Digest  string     `json:"digest"` // digest of the declaration; the grade is valid for no other one
	Grade   Grade      `json:"grade"`
	Against string     `json:"against,omitempty"` // why the grade is not better
	Kit     int        `json:"kit"`               // version of the kit's rules
	Seed    uint64     `json:"seed"`
	Runs    int        `json:"runs"` // number of runs of the tool into a fault
	Build   GradeBuild `json:"build"`
	Sum     string     `json:"sum"` // digest of all fields above
}

// Sealed returns the record with its sum.
func (r GradeRecord) Sealed() (GradeRecord, error) {
	r.Sum = ""
	raw, err := canon.Marshal(r)
	if err != nil {
		return r, fmt.Errorf("grade of tool %q: %w", r.Tool, err)
	}
	r.Sum = string(canon.Sum("remit/grade/v1", raw))
	return r, nil
}

// Check returns an error if a record is incomplete or was edited.
func (r GradeRecord) Check() error {
	sealed, err := r.Sealed()
	switch {
	case err != nil:
		return err
	case !slices.Contains(grades()[1:], r.Grade):
		return fmt.Errorf("grade of tool %q: %q is no grade; valid are %v", r.Tool, r.Grade, grades()[1:])
	case r.Tool == "" || r.Digest == "":
		return errors.New("a grade without a tool, or without the digest of its declaration")
	case r.Sum != sealed.Sum:
		return fmt.Errorf("grade of tool %q: its sum is of other words; grades are made by the kit, revert/reverttest, and not by hand", r.Tool)
	}
	return nil
}

// ReadGrades reads a file of grades: a JSON list of complete records.
func ReadGrades(file []byte) ([]GradeRecord, error) {
	var all []GradeRecord
	if err := canon.Decode(file, &all); err != nil {
		return nil, fmt.Errorf("file of grades: %w", err)
	}
	seen := map[string]bool{}
	for _, r := range all {
		if err := r.Check(); err != nil {
			return nil, fmt.Errorf("file of grades: %w", err)
		}
		if seen[r.Digest] {
			return nil, fmt.Errorf("file of grades: two grades for one declaration of tool %q", r.Tool)
		}
		seen[r.Digest] = true
	}
	return all, nil
}
