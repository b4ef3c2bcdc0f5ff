package perm

import (
	"encoding/json"
	"iter"
	"maps"
)

// CountsByTool holds the counts of a session's tools at one moment, by the name
// of the tool. It is immutable and safe for concurrent use. The zero value is
// empty. Its JSON form is an object.
type CountsByTool struct{ source CountSource }

// CountSource is where the counts of a CountsByTool come from. It must give the
// same answers for as long as it is used, from several goroutines. A session
// computes the counts of a tool only when a rule or a budget reads them.
type CountSource interface {
	// Of returns the counts of a tool, and whether the session knows them.
	Of(tool string) (counts ToolCounts, known bool)
	// All yields each tool once, in any order.
	All() iter.Seq2[string, ToolCounts]
	// Len returns the number of tools.
	Len() int
}

// NewCountsByTool returns counts that do not follow later changes of the map.
func NewCountsByTool(counts map[string]ToolCounts) CountsByTool {
	return CountsByTool{countMap(maps.Clone(counts))}
}

// CountsFrom returns the counts of a source.
func CountsFrom(s CountSource) CountsByTool { return CountsByTool{s} }

// Of returns the counts of a tool, and whether the session knows them.
func (c CountsByTool) Of(tool string) (counts ToolCounts, known bool) {
	if c.source == nil {
		return ToolCounts{}, false
	}
	return c.source.Of(tool)
}

// All yields each tool and its counts, in any order.
func (c CountsByTool) All() iter.Seq2[string, ToolCounts] {
	if c.source == nil {
		return maps.All(map[string]ToolCounts(nil))
	}
	return c.source.All()
}

// Len returns the number of tools.
func (c CountsByTool) Len() int {
	if c.source == nil {
		return 0
	}
	return c.source.Len()
}

// MarshalJSON writes an object with a member for each tool.
func (c CountsByTool) MarshalJSON() ([]byte, error) {
	all := make(map[string]ToolCounts, c.Len())
	maps.Insert(all, c.All())
	return json.Marshal(all)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *CountsByTool) UnmarshalJSON(text []byte) error {
	var all map[string]ToolCounts
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	*c = CountsByTool{countMap(all)}
	return nil
}

// countMap is a CountSource that was counted before.
type countMap map[string]ToolCounts

func (m countMap) Of(tool string) (ToolCounts, bool) {
	counts, known := m[tool]
	return counts, known
}

func (m countMap) All() iter.Seq2[string, ToolCounts] { return maps.All(m) }

func (m countMap) Len() int { return len(m) }
