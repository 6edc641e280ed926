"""`KubernetesJob`: hosts that are pods."""
