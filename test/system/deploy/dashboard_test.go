package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

const variable = "${datasource}" // an operator chooses a Prometheus by it

// schema is the form of a dashboard that each version of Grafana imports. Of its successor older ones know nothing.
type schema = dashboard.Dashboard //nolint:staticcheck // see above

// loadDashboard decodes the dashboard by Grafana's schema. A field that the schema does not have fails the test. It
// returns the panels with it, also the panels of collapsed rows.
func loadDashboard(t *testing.T) (d schema, panels []dashboard.Panel) {
	t.Helper()
	plugins.RegisterDefaultPlugins()
	text, err := os.ReadFile(root + "/deploy/grafana/delaytask.json")
	servertest.OK(t, err)
	// Its error is a list that may be empty. The queries are lost then, so the text is decoded once more.
	if err := new(schema).UnmarshalJSONStrict(text); err != nil && err.Error() != "" {
		t.Fatal(err)
	}
	servertest.OK(t, json.Unmarshal(text, &d))
	servertest.OK(t, d.Validate())
	again, err := json.Marshal(d)
	servertest.OK(t, err)
	var written, kept any
	servertest.OK(t, json.Unmarshal(text, &written))
	servertest.OK(t, json.Unmarshal(again, &kept))
	wantKept(t, "dashboard", written, kept)
	for _, p := range d.Panels {
		if p.Panel != nil {
			panels = append(panels, *p.Panel)
		} else {
			panels = append(panels, p.RowPanel.Panels...)
		}
	}
	return d, panels
}

// wantKept fails where the schema has lost what was written. Grafana's decoder overlooks some fields that it does not
// know.
func wantKept(t *testing.T, path string, written, kept any) {
	t.Helper()
	switch w := written.(type) {
	case map[string]any:
		k, _ := kept.(map[string]any)
		for name, value := range w {
			wantKept(t, path+"."+name, value, k[name])
		}
	case []any:
		k, _ := kept.([]any)
		for i, value := range w {
			if i == len(k) {
				t.Fatalf("the schema has no %s", path)
			}
			wantKept(t, fmt.Sprintf("%s[%d]", path, i), value, k[i])
		}
	default:
		if written != kept {
			t.Errorf("the schema has no %s: it keeps %v of %v", path, kept, written)
		}
	}
}

func targets(panel dashboard.Panel) (all []*prometheus.Dataquery) {
	for _, target := range panel.Targets {
		all = append(all, target.(*prometheus.Dataquery))
	}
	return all
}

func TestPanelsSayWhatTheyMean(t *testing.T) {
	d, panels := loadDashboard(t)
	const shortest = 60 // of a description that says what a value means and what to do
	ids, titles := map[uint32]bool{}, map[string]bool{}
	for _, p := range panels {
		if p.Description == nil || len(*p.Description) < shortest {
			t.Errorf("%s has no description", *p.Title)
		}
		if p.FieldConfig.Defaults.Unit == nil || p.FieldConfig.Defaults.Thresholds == nil {
			t.Errorf("%s has no unit or no thresholds", *p.Title)
		}
		for _, target := range targets(p) {
			if *target.Datasource.Uid != variable || *target.LegendFormat == "" {
				t.Errorf("%s has a query without a legend, or of a data source of its own", *p.Title)
			}
		}
		if ids[*p.Id] || titles[*p.Title] || *p.Datasource.Uid != variable || len(p.Targets) == 0 {
			t.Errorf("%s is there twice, has no query, or a data source of its own", *p.Title)
		}
		ids[*p.Id], titles[*p.Title] = true, true
	}
	for _, v := range d.Templating.List[1:] {
		if *v.Datasource.Uid != variable {
			t.Errorf("the variable %s has a data source of its own", v.Name)
		}
	}
}

func TestPanelsDoNotOverlap(t *testing.T) {
	d, _ := loadDashboard(t)
	taken := map[[2]uint32]string{}
	put := func(title string, at dashboard.GridPos) {
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]uint32{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s is drawn over %q, or beyond the edge", title, other)
				}
				taken[[2]uint32{x, y}] = title
			}
		}
	}
	for _, p := range d.Panels {
		if p.Panel != nil {
			put(*p.Panel.Title, *p.Panel.GridPos)
			continue
		}
		put(*p.RowPanel.Title, *p.RowPanel.GridPos)
		for _, inside := range p.RowPanel.Panels {
			put(*inside.Title, *inside.GridPos)
		}
	}
}
