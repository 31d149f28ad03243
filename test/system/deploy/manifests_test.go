// Package deploy checks what is in deploy/: the manifests, by the types of the Kubernetes API; the dashboard, by
// Grafana's schema and by a Prometheus that scrapes the program; and the alerts.
package deploy

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

const root = "../../.."

func TestMain(m *testing.M) { os.Exit(servertest.Built{Tests: m}.Run()) }

// manifests are all objects of the folder.
type manifests struct {
	deployment appsv1.Deployment
	job        batchv1.Job
	service    corev1.Service
	budget     policyv1.PodDisruptionBudget
	network    networkingv1.NetworkPolicy
	config     corev1.ConfigMap
	secret     corev1.Secret
	account    corev1.ServiceAccount
}

// load decodes each document that kustomize makes, and of the files that it leaves out, as its kind. A field that the
// kind does not have fails the test.
func load(t *testing.T) (m manifests) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme,
		networkingv1.AddToScheme,
	} {
		servertest.OK(t, add(scheme))
	}
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	const folder = root + "/deploy/kubernetes"
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	servertest.OK(t, err)
	text, err := built.AsYaml()
	servertest.OK(t, err)
	files := map[string][]byte{"kustomization.yaml": text}
	for _, name := range []string{"migrate.yaml", "networkpolicy.yaml", "secret.example.yaml"} {
		files[name], err = os.ReadFile(filepath.Join(folder, name))
		servertest.OK(t, err)
	}
	found := 0
	for file, text := range files {
		documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
		for {
			document := make([]byte, 1<<20)
			n, err := documents.Read(document)
			if errors.Is(err, io.EOF) {
				break
			}
			servertest.OK(t, err)
			object, _, err := strict.Decode(document[:n], nil, nil)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			found++
			switch o := object.(type) {
			case *appsv1.Deployment:
				m.deployment = *o
			case *batchv1.Job:
				m.job = *o
			case *corev1.Service:
				m.service = *o
			case *policyv1.PodDisruptionBudget:
				m.budget = *o
			case *networkingv1.NetworkPolicy:
				m.network = *o
			case *corev1.ConfigMap:
				m.config = *o
			case *corev1.Secret:
				m.secret = *o
			case *corev1.ServiceAccount:
				m.account = *o
			}
		}
	}
	if found != 8 {
		t.Fatalf("%d objects are there, want one of each kind", found)
	}
	return m
}

func TestManifestsNameEachOther(t *testing.T) {
	m := load(t)
	pod := m.deployment.Spec.Template
	for name, selector := range map[string]map[string]string{
		"deployment": m.deployment.Spec.Selector.MatchLabels, "service": m.service.Spec.Selector,
		"budget": m.budget.Spec.Selector.MatchLabels, "network policy": m.network.Spec.PodSelector.MatchLabels,
		"spread": pod.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels,
	} {
		for label, value := range selector {
			if pod.Labels[label] != value {
				t.Errorf("the %s selects %s=%s, which its pods do not have", name, label, value)
			}
		}
		if labels := m.job.Spec.Template.Labels; !differs(selector, labels) {
			t.Errorf("the %s selects the pods of the migration", name)
		}
	}
	c, migrate := pod.Spec.Containers[0], m.job.Spec.Template.Spec.Containers[0]
	if c.Image != migrate.Image {
		t.Errorf("the migration runs %s, the service %s", migrate.Image, c.Image)
	}
	ports := []string{m.service.Spec.Ports[0].TargetPort.String(), c.LivenessProbe.HTTPGet.Port.String(),
		c.ReadinessProbe.HTTPGet.Port.String(), c.StartupProbe.HTTPGet.Port.String()}
	if want := []string{"http", "http", "http", "http"}; !slices.Equal(ports, want) || c.Ports[0].Name != "http" {
		t.Errorf("the ports are %v", ports)
	}
	if c.EnvFrom[0].SecretRef.Name != m.secret.Name || migrate.EnvFrom[0].SecretRef.Name != m.secret.Name ||
		pod.Spec.Volumes[0].ConfigMap.Name != m.config.Name || pod.Spec.ServiceAccountName != m.account.Name {
		t.Error("a pod names a secret, a config map or an account that is not there")
	}
	if !regexp.MustCompile(`^delaytask-[a-z0-9]{10}$`).MatchString(m.config.Name) {
		t.Errorf("the config map is %s: other settings do not roll the pods", m.config.Name)
	}
	version, err := exec.Command(servertest.Build(t, "./cmd/delaytask"), "version").Output()
	servertest.OK(t, err)
	if _, tag, _ := strings.Cut(c.Image, ":"); !strings.Contains(string(version), " "+tag+" ") {
		t.Errorf("the image is %s, the program says %s", c.Image, version)
	}
}

func differs(selector, labels map[string]string) bool {
	for label, value := range selector {
		if labels[label] != value {
			return true
		}
	}
	return false
}

func TestPodsHaveNoRights(t *testing.T) {
	m := load(t)
	for name, pod := range map[string]corev1.PodSpec{
		"deployment": m.deployment.Spec.Template.Spec, "migration": m.job.Spec.Template.Spec,
	} {
		own, c := pod.SecurityContext, pod.Containers[0].SecurityContext
		if !*own.RunAsNonRoot || own.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
			*pod.AutomountServiceAccountToken || *c.AllowPrivilegeEscalation || !*c.ReadOnlyRootFilesystem ||
			!slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("the pods of the %s have rights", name)
		}
	}
}
