{{- define "conductor-app.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "conductor-app.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "conductor-app.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "conductor-app.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Labels that select the pods. */}}
{{- define "conductor-app.selectorLabels" -}}
app.kubernetes.io/name: {{ include "conductor-app.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "conductor-app.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "conductor-app.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "conductor-app.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}
{{- end }}

{{- define "conductor-app.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "conductor-app.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The value of an environment variable. Numbers of YAML would otherwise be printed as 1e+06. */}}
{{- define "conductor-app.value" -}}
{{- if kindIs "float64" . }}{{ . | int64 | toString | quote }}{{ else }}{{ . | toString | quote }}{{ end }}
{{- end }}

{{/* The settings as data of a ConfigMap. */}}
{{- define "conductor-app.settings" -}}
HOST: "0.0.0.0"
PORT: {{ include "conductor-app.value" .Values.web.port }}
{{- range $name, $value := .Values.settings }}
{{- if not (kindIs "invalid" $value) }}
{{ $name }}: {{ include "conductor-app.value" $value }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.workflowEnv }}
CONDUCTOR_ENV_{{ $name }}: {{ include "conductor-app.value" $value }}
{{- end }}
{{- end }}

{{/* The secret settings as stringData of a Secret. */}}
{{- define "conductor-app.secrets" -}}
{{- range $name, $value := .Values.secrets }}
{{- if not (kindIs "invalid" $value) }}
{{ $name }}: {{ $value | toString | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* The container of a role: a dict with root, role, args, resources, and the suffix of the ConfigMap and the Secret. */}}
{{- define "conductor-app.container" -}}
{{- $values := .root.Values -}}
name: {{ .role }}
image: {{ include "conductor-app.image" .root | quote }}
imagePullPolicy: {{ $values.image.pullPolicy }}
args: {{ toJson .args }}
envFrom:
  - configMapRef:
      name: {{ include "conductor-app.fullname" .root }}{{ .suffix }}
  - secretRef:
      name: {{ default (printf "%s%s" (include "conductor-app.fullname" .root) .suffix) $values.existingSecret }}
  {{- with $values.extraEnvFrom }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
env:
  # Prometheus reads the metrics of a pod at its address.
  - name: POD_IP
    valueFrom:
      fieldRef: {fieldPath: status.podIP}
  - name: ALLOWED_HOSTS
    value: {{ printf "%s,$(POD_IP)" $values.settings.ALLOWED_HOSTS | quote }}
  {{- with $values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
securityContext:
  {{- toYaml $values.securityContext | nindent 2 }}
resources:
  {{- toYaml .resources | nindent 2 }}
volumeMounts:
  - name: tmp
    mountPath: /tmp
  - name: state
    mountPath: /var/lib/conductor-app
  {{- with $values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "conductor-app.volumes" -}}
- name: tmp
  emptyDir: {}
- name: state
  emptyDir: {}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The Deployment of a role: a dict with root, role, args, and optionally the part of the container that only it has. */}}
{{- define "conductor-app.deployment" -}}
{{- $values := index .root.Values .role -}}
{{- $fullname := include "conductor-app.fullname" .root -}}
{{- $scaling := dig .role "enabled" false .root.Values.autoscaling -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $fullname }}-{{ .role }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "conductor-app.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
spec:
  {{- if not $scaling }}
  replicas: {{ $values.replicas }}
  {{- end }}
  revisionHistoryLimit: 3
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: 0
      maxSurge: 1
  selector:
    matchLabels:
      {{- include "conductor-app.selectorLabels" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .role }}
  template:
    metadata:
      labels:
        {{- include "conductor-app.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .role }}
        {{- with .root.Values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        # A change of a setting replaces the pods.
        checksum/settings: {{ include "conductor-app.settings" .root | sha256sum }}
        checksum/secrets: {{ include "conductor-app.secrets" .root | sha256sum }}
        {{- with .root.Values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ include "conductor-app.serviceAccountName" .root }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      securityContext:
        {{- toYaml .root.Values.podSecurityContext | nindent 8 }}
      terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
      containers:
        - {{- include "conductor-app.container" (dict "root" .root "role" .role "args" .args "resources" $values.resources "suffix" "") | nindent 10 }}
          {{- with .container }}
          {{- . | nindent 10 }}
          {{- end }}
      volumes:
        {{- include "conductor-app.volumes" .root | nindent 8 }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
        {{- if $values.topologySpreadConstraints }}
        {{- toYaml $values.topologySpreadConstraints | nindent 8 }}
        {{- else }}
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "conductor-app.selectorLabels" .root | nindent 14 }}
              app.kubernetes.io/component: {{ .role }}
        {{- end }}
{{- end }}
