package schema_test

import (
	"testing"
	"time"

	"github.com/remit-dev/remit/internal/schema"
	"github.com/stretchr/testify/require"
)

type unit string

type place struct {
	City string `json:"city" default:"Oslo"`
}

type tagged struct {
	place
	Unit    unit              `json:"unit" enum:"metric,imperial" default:"metric"`
	Days    int               `json:"days" default:"3"`
	Size    float64           `json:"size,omitempty" enum:"1,2.5"`
	Tags    []string          `json:"tags,omitempty" enum:"a,b" default:"[\"a\"]"`
	Inner   place             `json:"inner"`
	Others  []place           `json:"others,omitempty"`
	ByName  map[string]place  `json:"by_name,omitempty"`
	Maybe   *bool             `json:"maybe" default:"true"`
	Wanted  string            `json:"wanted,omitempty" required:"true"`
	Free    string            `json:"free" required:"false"`
	Since   time.Time         `json:"since" default:"2026-01-02T03:04:05Z"`
	Numbers map[string][]uint `json:"numbers,omitempty"`
}

// TestTags checks that the tags of fields appear in the schema, at any depth.
func TestTags(t *testing.T) {
	doc, err := schema.ForType[tagged]()
	require.NoError(t, err)
	inner := `{"type":"object","additionalProperties":false,"properties":{"city":{"type":"string","default":"Oslo"}}}`
	require.JSONEq(t, `{"type":"object","additionalProperties":false,"required":["inner","wanted"],"properties":{
		"city":{"type":"string","default":"Oslo"},
		"unit":{"type":"string","enum":["metric","imperial"],"default":"metric"},
		"days":{"type":"integer","default":3},
		"size":{"type":"number","enum":[1,2.5]},
		"tags":{"type":["null","array"],"items":{"type":"string","enum":["a","b"]},"default":["a"]},
		"inner":`+inner+`,
		"others":{"type":["null","array"],"items":`+inner+`},
		"by_name":{"type":"object","additionalProperties":`+inner+`},
		"maybe":{"type":["null","boolean"],"default":true},
		"wanted":{"type":"string"},
		"free":{"type":"string"},
		"since":{"type":"string","format":"date-time","default":"2026-01-02T03:04:05Z"},
		"numbers":{"type":"object","additionalProperties":{"type":["null","array"],"items":{"type":"integer","minimum":0}}}}}`, string(doc))
	whole, err := compile(t, string(doc)).Complete(value(t, `{"inner":{},"wanted":"x"}`))
	require.NoError(t, err)
	require.NoError(t, compile(t, string(doc)).Validate(whole))
	var got tagged
	require.NoError(t, whole.Decode(&got))
	require.Equal(t, "Oslo", got.City)
	require.Equal(t, "Oslo", got.Inner.City)
	require.Equal(t, 3, got.Days)
	require.True(t, *got.Maybe)
}

// TestInvalidTags checks that invalid tags are rejected with the name
// of the field.
func TestInvalidTags(t *testing.T) {
	for says, derive := range map[string]func() ([]byte, error){
		".N has the enum value a, which is not of its type": schema.ForType[struct {
			N int `enum:"a"`
		}],
		".N has the enum value 1.5, which is not of its type": schema.ForType[struct {
			N int `enum:"1,1.5"`
		}],
		".N has the default x, which it does not accept itself": schema.ForType[struct {
			N int `default:"x"`
		}],
		".U has the default c, which it does not accept itself": schema.ForType[struct {
			U string `enum:"a,b" default:"c"`
		}],
		".U is required and has a default": schema.ForType[struct {
			U string `default:"c" required:"true"`
		}],
		`.U has the tag required:"yes", want true or false`: schema.ForType[struct {
			U string `required:"yes"`
		}],
		".O[].U has the default c": schema.ForType[struct {
			O []struct {
				U bool `default:"c"`
			}
		}],
	} {
		_, err := derive()
		require.ErrorIs(t, err, schema.ErrSchema)
		require.ErrorContains(t, err, says)
	}
}
