package browser

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// vendor is where the files of others stand that browsers get.
const vendor = "../../../dashboard/static/vendor"

// TestFilesOfOthersAreAsPublished compares each with the one in the archive that the manifest names by its hash.
func TestFilesOfOthersAreAsPublished(t *testing.T) {
	t.Parallel()
	var packages []struct {
		Package, Integrity string
		Files              map[string]string // their names here and in the archive
	}
	manifest, err := os.ReadFile(filepath.Join(vendor, "packages.json"))
	servertest.OK(t, err)
	servertest.OK(t, json.Unmarshal(manifest, &packages))
	known := map[string]bool{"packages.json": true}
	for _, p := range packages {
		archive := npm(t, p.Package, p.Integrity)
		for here, there := range p.Files {
			known[here] = true
			content, err := os.ReadFile(filepath.Join(vendor, here))
			servertest.OK(t, err)
			published, err := os.ReadFile(filepath.Join(archive, there))
			servertest.OK(t, err)
			if !bytes.Equal(content, published) {
				t.Errorf("%s is not %s of %s", here, there, p.Package)
			}
		}
	}
	entries, err := os.ReadDir(vendor)
	servertest.OK(t, err)
	for _, entry := range entries {
		if !known[entry.Name()] {
			t.Errorf("%s is in no package of the manifest", entry.Name())
		}
	}
}
