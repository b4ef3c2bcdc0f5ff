package tool

import (
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/canon"
)

// Grade is what the fault kit, revert/reverttest, found out about taking the calls of
// a tool back. It belongs to one declaration, as its digest tells it.
type Grade string

// The grades, worst first.
const (
	Ungraded      Grade = "ungraded"       // nobody ran the kit over this declaration
	NotUndoable   Grade = "not_undoable"   // something can be lost, doubled, or called undone that is not
	Compensable   Grade = "compensable"    // taken back where all goes well; traces remain, or some faults leave it to a person
	CrashUndoable Grade = "crash_undoable" // taken back exactly, from wherever a fault left it
	ReadOnly      Grade = "read_only"      // nothing was ever changed
)

// Grades lists all grades, worst first.
func Grades() []Grade { return []Grade{Ungraded, NotUndoable, Compensable, CrashUndoable, ReadOnly} }

// AtLeast reports whether g is as good as the other grade. What is no grade is as good
// as none.
func (g Grade) AtLeast(other Grade) bool {
	return max(slices.Index(Grades(), g), 0) >= slices.Index(Grades(), other)
}

// GradeBuild is the program that gave a grade, as its build says it.
type GradeBuild struct {
	Module   string `json:"module"`             // the main module of the program
	Version  string `json:"version"`            // of that module
	Revision string `json:"revision,omitempty"` // of its source, where the build knows it
	Modified bool   `json:"modified,omitempty"` // the source was changed after that revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// GradeRecord is one grade as it is kept, beside the tool that it is of.
type GradeRecord struct {
	Tool    string     `json:"tool"`
	Digest  string     `json:"digest"` // of the declaration; for another one the grade says nothing
	Grade   Grade      `json:"grade"`
	Against string     `json:"against,omitempty"` // why it is not better
	Kit     int        `json:"kit"`               // version of the kit's rules
	Seed    uint64     `json:"seed"`
	Runs    int        `json:"runs"` // how often the tool was run into a fault
	Build   GradeBuild `json:"build"`
	Sum     string     `json:"sum"` // digest of all of the above
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

// Check refuses a record that is not whole, or was edited.
func (r GradeRecord) Check() error {
	sealed, err := r.Sealed()
	switch {
	case err != nil:
		return err
	case !slices.Contains(Grades()[1:], r.Grade):
		return fmt.Errorf("grade of tool %q: %q is no grade; valid are %v", r.Tool, r.Grade, Grades()[1:])
	case r.Tool == "" || r.Digest == "":
		return errors.New("a grade without a tool, or without the digest of its declaration")
	case r.Sum != sealed.Sum:
		return fmt.Errorf("grade of tool %q: its sum is of other words; grades are made by the kit, revert/reverttest, and not by hand", r.Tool)
	}
	return nil
}

// ReadGrades reads a file of grades: a JSON list of records, each whole.
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

// Graded returns the tool with the grade that the file holds for its digest, and
// ungraded where it holds none: a declaration that was changed is another one, of
// which nothing was found out.
func (t Tool) Graded(file []byte) (Tool, error) {
	all, err := ReadGrades(file)
	if err != nil {
		return Tool{}, err
	}
	if t.t == nil {
		return Tool{}, errors.New("the zero Tool has no grade")
	}
	graded := *t.t
	graded.grade = nil
	for _, r := range all {
		if r.Digest == t.t.digest {
			graded.grade = &r
		}
	}
	return Tool{&graded}, nil
}

// Grade is what is known of undoing calls of the tool.
func (t Tool) Grade() Grade {
	if t.t == nil || t.t.grade == nil {
		return Ungraded
	}
	return t.t.grade.Grade
}

// GradeRecord returns the record of the tool's grade, where it has one.
func (t Tool) GradeRecord() (r GradeRecord, ok bool) {
	if t.t == nil || t.t.grade == nil {
		return GradeRecord{}, false
	}
	return *t.t.grade, true
}
